#include "wire/info_json.h"

#include <array>
#include <utility>

#include "wire/answer.h"
#include "wire/fields.h"
#include "wire/job_json.h"

namespace bide::wire {

namespace {

constexpr auto kCountsRows = std::to_array<Field<AttemptCounts>>({
    always<&AttemptCounts::failed>("failed"),
    always<&AttemptCounts::timed_out>("timed_out"),
    always<&AttemptCounts::lost>("lost"),
    always<&AttemptCounts::crashed>("crashed"),
});

constexpr auto kErrorRows = std::to_array<Field<AttemptError>>({
    always<&AttemptError::attempt>("attempt"),
    always<&AttemptError::at>("at"),
    always<&AttemptError::fault>("fault"),
    bytes<&AttemptError::text>("text"),
    base64<&AttemptError::text>("text_base64"),
});

constexpr auto kStepRows = std::to_array<Field<Step>>({
    always<&Step::name>("name"),
    bytes<&Step::result>("result").says("As text."),
    base64<&Step::result>("result_base64").says("Bytes that are not text."),
});

constexpr auto kProgressRows = std::to_array<Field<Progress>>({
    always<&Progress::part>("part").within(0, 1).says("From 0 to 1."),
    bytes<&Progress::note>("note").unless_empty(),
    base64<&Progress::note>("note_base64"),
});

// Named as JobInfo has them.
constexpr auto kPastRows = std::to_array<Field<JobPast>>({
    field<&JobPast::attempts>("attempts").within(0, Limits::kAttempts).says("Started so far."),
    field<&JobPast::counts>("counts"),
    maybe<&JobPast::history>("errors").at_most(Limits::kHistory),
    maybe<&JobPast::dead>("dead_reason").says("Given: the job is dead."),
    maybe<&JobPast::finished>("finished").says("Dead: since when."),
});

template <ContentForm kForm>
MaybeProblem read_result_as(JsonReader& in, const Field<JobInfo>& row, JobInfo& info) {
  return take_content(in, row.name, kForm, info.result);
}

void write_result(JsonWriter& out, const Field<JobInfo>& row, const JobInfo& info) {
  if (info.result.empty()) return;
  write_content(out, row.name, info.result, info.result_content_type);
  out.field("result_content_type", info.result_content_type);
}

MaybeProblem read_result_type(JsonReader& in, const Field<JobInfo>& row, JobInfo& info) {
  return take_text(in, row.name, info.result_content_type);
}

constexpr auto kJobInfoRows = std::to_array<Field<JobInfo>>({
    always<&JobInfo::state>("state"),
    always<&JobInfo::due>("due"),
    always<&JobInfo::attempts>("attempts").says("Started so far."),
    always<&JobInfo::counts>("counts"),
    always<&JobInfo::history>("errors"),
    bytes<&JobInfo::worker>("worker").unless_empty().says("Running: who has it."),
    base64<&JobInfo::worker>("worker_base64"),
    maybe<&JobInfo::progress>("progress").says("Running: how far it is."),
    maybe<&JobInfo::steps>("steps").says("Done so far: they are not done again."),
    maybe<&JobInfo::waits_for>("waits_for").says("Waiting: for so many of after."),
    bytes<&JobInfo::note>("note").unless_empty().says("Why it was returned."),
    base64<&JobInfo::note>("note_base64"),
    maybe<&JobInfo::finished>("finished"),
    maybe<&JobInfo::dead_reason>("dead_reason"),
    maybe<&JobInfo::whole>("whole").says("Done: the job is still kept as it was enqueued, with body and headers."),
    row("result", kAnyType, read_result_as<ContentForm::kJson>, write_result),
    row("result_text", kStringType, read_result_as<ContentForm::kText>),
    row("result_base64", kStringType, read_result_as<ContentForm::kBase64>),
    row("result_content_type", kStringType, read_result_type),
});

constexpr auto kJobPageRows = std::to_array<Field<JobPage>>({
    always<&JobPage::jobs>("jobs"),
    row<JobPage, JobPage>(
        "next", kStringType,
        [](JsonReader& in, const auto& row, JobPage& page) { return take_text(in, row.name, page.next); },
        [](JsonWriter& out, const auto& row, const JobPage& page) {
          out.name(row.name);
          page.next.empty() ? out.null() : out.string(page.next);
        })
        .always()
        .or_null()
        .says("The cursor of the next page, or null on the last."),
});

constexpr auto kQueueRows = std::to_array<Field<QueueInfo>>({
    always<&QueueInfo::name>("name"),
    always<&QueueInfo::paused>("paused"),
    always<&QueueInfo::scheduled>("scheduled"),
    always<&QueueInfo::ready>("ready"),
    always<&QueueInfo::waiting>("waiting").says("For other jobs."),
    always<&QueueInfo::running>("running"),
    always<&QueueInfo::dead>("dead"),
    always<&QueueInfo::done>("done").says("Still remembered."),
    always<&QueueInfo::oldest_ready>("oldest_ready").or_null().says("When the longest waiting ready job was due."),
    always<&QueueInfo::workers>("workers").says("Subscriptions that take from it."),
});

constexpr auto kExplanationRows = std::to_array<Field<Explanation>>({
    always<&Explanation::code>("code"),
    always<&Explanation::text>("text"),
});

constexpr auto kAuditRows = std::to_array<Field<AuditReport>>({
    row<AuditReport, AuditReport>(
        "ok", kBooleanType, nullptr,
        [](JsonWriter& out, const auto& row, const AuditReport& report) { out.field(row.name, report.ok()); })
        .always(),
    always<&AuditReport::accepted>("accepted"),
    always<&AuditReport::done>("done"),
    always<&AuditReport::removed>("removed"),
    always<&AuditReport::live>("live"),
    always<&AuditReport::details>("details"),
    always<&AuditReport::problems>("problems"),
});

// A level that this client does not know is no reason to go on as if all were well.
MaybeProblem read_level(JsonReader& in, const Field<Pressure>& row, Pressure& pressure) {
  const std::string_view given = in.string();
  const Names names = row.type.names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    pressure.level = static_cast<Pressure::Level>(i);
    if (names[i] == given) break;
  }
  return wrong_type(in, row.name);
}

// A cause that it does not know is none for it.
MaybeProblem read_cause(JsonReader& in, const Field<Pressure>& row, Pressure& pressure) {
  const std::string_view given = in.string();
  const Names names = row.type.names();
  const auto found = std::find(names.begin(), names.end(), given);
  if (found != names.end()) pressure.cause = static_cast<Pressure::Cause>(found - names.begin());
  return wrong_type(in, row.name);
}

constexpr auto kPressureRows = [] {
  auto rows = std::to_array<Field<Pressure>>({
      always<&Pressure::level>("level"),
      always<&Pressure::reason>("reason"),
      always<&Pressure::retry_after>("retry_after_ms"),
      always<&Pressure::cause>("cause"),
  });
  rows[0].read = read_level;
  rows[3].read = read_cause;
  return rows;
}();

constexpr auto kCapabilityRows = std::to_array<Field<Capabilities>>({
    field<&Capabilities::inspect>("inspect")
        .says("Jobs are found, listed and counted; an unknown id is told from a known one."),
    field<&Capabilities::cancel>("cancel").says("Jobs that wait can be taken out."),
    field<&Capabilities::reschedule>("reschedule").says("A job that waits can be put off."),
    field<&Capabilities::hasten>("hasten").says("A job that waits can be made due earlier."),
    field<&Capabilities::unique_keys>("unique_keys").says("At most one live job with a key."),
    field<&Capabilities::idempotent_ids>("idempotent_ids").says("The same id enqueued twice is one job."),
    field<&Capabilities::priorities>("priorities").says("Higher priorities run first."),
    field<&Capabilities::pause>("pause").says("Queues can be paused."),
    field<&Capabilities::results>("results").says("Results of done jobs are kept for a while."),
    field<&Capabilities::expiry>("expiry").says("A job that has not started in time is dead."),
    field<&Capabilities::dead_set>("dead_set").says("Dead jobs are found, listed, replayed and removed."),
    field<&Capabilities::atomic_effects>("atomic_effects")
        .says("Effects and outcome are one step; otherwise effects come first."),
    field<&Capabilities::completions>("completions")
        .says("on_done and reply_queue are told in the step that ends the job."),
    field<&Capabilities::final_settle>("final_settle").says("After a confirmed settle a job never starts again."),
    field<&Capabilities::due_order>("due_order")
        .says("What becomes due at different times arrives in that order, however close."),
    field<&Capabilities::lasting_leases>("lasting_leases")
        .says("Leases of workers elsewhere survive a restart of the broker."),
    field<&Capabilities::save_body>("save_body").says("A running job's body can be replaced for its next attempt."),
    field<&Capabilities::audit>("audit").says("Every accepted job is accounted for."),
    field<&Capabilities::requests>("requests").says("Replies to requests arrive."),
    field<&Capabilities::carries_past>("carries_past")
        .says("Jobs from another broker keep attempts and errors: bide move goes there."),
    field<&Capabilities::events>("events").says("Events are published to the queues that are bound to their topic."),
    field<&Capabilities::group_limits>("group_limits").says("The limits of a binding are obeyed."),
    field<&Capabilities::edit>("edit").says("Jobs that wait or are dead can be changed."),
    field<&Capabilities::schedules>("schedules").says("Recurring jobs."),
    field<&Capabilities::queue_rules>("queue_rules").says("Limits of queues and of the groups in them are obeyed."),
    field<&Capabilities::kinds>("kinds").says("A worker gets only jobs of the kinds that it asks for."),
    field<&Capabilities::unique_windows>("unique_windows").says("unique_for and on_conflict are obeyed."),
    field<&Capabilities::dependencies>("dependencies").says("Jobs can wait for jobs, and share a flow."),
    field<&Capabilities::progress>("progress").says("How far an attempt is, is kept and shown."),
    field<&Capabilities::steps>("steps").says("Results of steps are kept for later attempts."),
    field<&Capabilities::virtual_time>("virtual_time").says("The test kit can move its clock."),
    always<&Capabilities::why_not>("why_not"),
});

}  // namespace

template <>
std::span<const Field<AttemptCounts>> rows_of<AttemptCounts>() {
  return kCountsRows;
}
template <>
std::span<const Field<AttemptError>> rows_of<AttemptError>() {
  return kErrorRows;
}
template <>
std::span<const Field<Step>> rows_of<Step>() {
  return kStepRows;
}
template <>
std::span<const Field<Progress>> rows_of<Progress>() {
  return kProgressRows;
}
template <>
std::span<const Field<JobPast>> rows_of<JobPast>() {
  return kPastRows;
}
template <>
std::span<const Field<JobInfo>> rows_of<JobInfo>() {
  return kJobInfoRows;
}
template <>
std::span<const Field<JobPage>> rows_of<JobPage>() {
  return kJobPageRows;
}
template <>
std::span<const Field<QueueInfo>> rows_of<QueueInfo>() {
  return kQueueRows;
}
template <>
std::span<const Field<Explanation>> rows_of<Explanation>() {
  return kExplanationRows;
}
template <>
std::span<const Field<AuditReport>> rows_of<AuditReport>() {
  return kAuditRows;
}
template <>
std::span<const Field<Pressure>> rows_of<Pressure>() {
  return kPressureRows;
}
template <>
std::span<const Field<Capabilities>> rows_of<Capabilities>() {
  return kCapabilityRows;
}

void write_value(JsonWriter& out, const JobInfo& info) {
  out.begin_object();
  if (info.state == JobState::kDone && !info.whole) {
    // Nothing else is kept of what was given for the job.
    out.field("id", info.job.id).field("kind", info.job.kind).field("queue", info.job.queue);
    if (!info.job.after.empty()) write_value(out.name("after"), info.job.after);
    if (!info.job.flow.is_nil()) out.field("flow", info.job.flow);
  } else {
    write_fields(out, info.job, Detail::kShown);
  }
  write_rows(out, rows_of<JobInfo>(), info);
  out.end_object();
}

void read_answer(JsonReader& in, JobInfo& info) { read_answer_with_job(in, rows_of<JobInfo>(), info); }

void write_status(JsonWriter& out, const MaybeProblem& problem, int status_when_well) {
  out.field("status", problem ? problem->status : status_when_well);
  if (problem) write(out.name("problem"), *problem);
}

Result<std::vector<Status>> read_statuses(std::string_view body, std::string_view name) {
  return read_list<Status>(body, name, [](JsonReader& in) {
    std::optional<Problem> problem;
    in.object();
    while (const auto field = in.field()) {
      if (*field == "problem") {
        problem = read_problem(in);
      } else {
        in.raw();
      }
    }
    return problem ? Status(error_of(*problem)) : Status();
  });
}

std::string job_info_json(const JobInfo& info) { return to_json(info); }
std::string job_page_json(const JobPage& page) { return to_json(page); }
std::string queues_json(const std::vector<QueueInfo>& queues) { return list_json("queues", queues); }
std::string explanation_json(const Explanation& explanation) { return to_json(explanation); }
std::string audit_json(const AuditReport& report) { return to_json(report); }
std::string pressure_json(const Pressure& pressure) { return to_json(pressure); }
std::string capabilities_json(const Capabilities& capabilities) { return to_json(capabilities); }

std::string count_json(std::string_view name, std::uint64_t count) {
  return object_text([&](JsonWriter& out) { out.field(name, count); });
}

std::string id_results_json(const std::vector<JobId>& ids, const std::vector<Status>& statuses) {
  return object_text([&](JsonWriter& out) {
    std::size_t failed = 0;
    out.name("results").begin_array();
    for (std::size_t i = 0; i < ids.size() && i < statuses.size(); ++i) {
      out.begin_object().field("id", ids[i]);
      failed += statuses[i] ? 0 : 1;
      write_status(out, statuses[i] ? std::nullopt : MaybeProblem(problem_of(statuses[i].error())));
      out.end_object();
    }
    out.end_array().field("succeeded", ids.size() - failed).field("failed", failed);
  });
}

Result<JobInfo> read_job_info(std::string_view body) { return read_document<JobInfo>(body); }
Result<JobPage> read_job_page(std::string_view body) { return read_document<JobPage>(body); }
Result<std::vector<QueueInfo>> read_queues(std::string_view body) { return read_list<QueueInfo>(body, "queues"); }
Result<Explanation> read_explanation(std::string_view body) { return read_document<Explanation>(body); }
Result<AuditReport> read_audit(std::string_view body) { return read_document<AuditReport>(body); }
Result<Pressure> read_pressure(std::string_view body) { return read_document<Pressure>(body); }

Result<Capabilities> read_capabilities(std::string_view body) {
  // What a server does not speak of it does not have.
  Capabilities capabilities;
  for (const Field<Capabilities>& row : kCapabilityRows) {
    JsonReader no("false");
    if (row.type.type == kBooleanType.type) row.read(no, row, capabilities);
  }
  return read_document(body, std::move(capabilities));
}

Result<std::uint64_t> read_count(std::string_view body, std::string_view name) {
  std::uint64_t count = 0;
  return read_named(body, name, count, [&](JsonReader& in) {
    if (take_integer<std::uint64_t>(in, name, 0, UINT64_MAX, count)) in.fail("wrong_type", "a number is out of range");
  });
}

Result<std::vector<Status>> read_id_results(std::string_view body) { return read_statuses(body, "results"); }

void add_info_schemas(Schemas& schemas) {
  schemas.push_back(
      {"AttemptCounts", object_schema({.text = "Attempts by how they ended, other than well."}, kCountsRows)});
  schemas.push_back({"AttemptError", object_schema({}, kErrorRows)});
  schemas.push_back({"Step", object_schema({.text = "What a step of a handler came to."}, kStepRows)});
  schemas.push_back({"Progress", object_schema({}, kProgressRows)});
  schemas.push_back(
      {"JobPast", object_schema({.text = "What became of a job before it came here. Needs the scope admin."}, kPastRows)});
  schemas.push_back(
      {"JobInfo", object_schema({.limits = false, .required = {"id", "queue"}}, shown_job_fields(), kJobInfoRows)});
  schemas.push_back({"JobPage", object_schema({}, kJobPageRows)});
  schemas.push_back({"Queue", object_schema({}, kQueueRows)});
  schemas.push_back({"Queues", list_schema("queues", "Queue")});
  schemas.push_back({"Explanation", object_schema({}, kExplanationRows)});
  schemas.push_back({"Audit", object_schema({}, kAuditRows)});
  schemas.push_back({"Pressure", object_schema({}, kPressureRows)});
  schemas.push_back({"Capabilities", object_schema({}, kCapabilityRows)});
}

}  // namespace bide::wire
