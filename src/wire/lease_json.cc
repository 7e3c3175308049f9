#include "wire/lease_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/duration.h"
#include "core/job_rules.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/topics.h"
#include "wire/answer.h"
#include "wire/fields.h"
#include "wire/info_json.h"

namespace bide::wire {

namespace {

// ---- Asking for leases.

MaybeProblem add_queue(LeaseRequest& request, QueueShare share) {
  if (!core::is_name(share.name)) {
    return make_problem("invalid_queue_name",
                        "invalid queue name " + core::quoted(share.name) +
                            "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start",
                        "queues");
  }
  for (const QueueShare& other : request.queues) {
    if (other.name == share.name) {
      return make_problem("invalid_argument",
                          "queues: " + core::quoted(share.name) + " is named twice; give it a weight instead",
                          "queues");
    }
  }
  request.queues.push_back(std::move(share));
  return std::nullopt;
}

constexpr auto kShareRows = std::to_array<Field<QueueShare>>({
    field<&QueueShare::name>("name").always(),
    field<&QueueShare::weight>("weight").within(1, 1000),
});

MaybeProblem read_queue_shares(JsonReader& in, const Field<LeaseRequest>& row, LeaseRequest& request) {
  in.array();
  while (in.element()) {
    if (request.queues.size() == kMostQueues) {
      return make_problem("out_of_range", "queues: at most " + std::to_string(kMostQueues) + " are allowed", "queues");
    }
    QueueShare share;
    if (in.type() == JsonReader::Type::kString) {
      share.name = in.string();
    } else {
      FieldReader<QueueShare> fields(kShareRows);
      if (MaybeProblem problem = read_fields(in, fields, share)) return problem;
    }
    if (!in.ok()) return wrong_type(in, row.name);
    if (MaybeProblem problem = add_queue(request, std::move(share))) return problem;
  }
  if (!in.ok()) return wrong_type(in, row.name);
  if (request.queues.empty()) {
    return make_problem("missing_field", "queues is empty; name at least one, or leave it out for 'default'", "queues");
  }
  return std::nullopt;
}

MaybeProblem read_one_queue(JsonReader& in, const Field<LeaseRequest>& row, LeaseRequest& request) {
  QueueShare share;
  if (MaybeProblem problem = take_text(in, row.name, share.name)) return problem;
  return in.ok() ? add_queue(request, std::move(share)) : std::nullopt;
}

MaybeProblem read_kinds(JsonReader& in, const Field<LeaseRequest>& row, LeaseRequest& request) {
  if (MaybeProblem problem = read_value(in, row, request.kinds)) return problem;
  for (const std::string& kind : request.kinds) {
    if (core::is_name(kind) || core::is_pattern(kind)) continue;
    return make_problem("invalid_kind_name", "kinds: invalid kind " + core::quoted(kind) + std::string(core::kNameRule) +
                                                 "; * stands for one word between dots, # for any number",
                        "kinds");
  }
  std::sort(request.kinds.begin(), request.kinds.end());
  request.kinds.erase(std::unique(request.kinds.begin(), request.kinds.end()), request.kinds.end());
  return std::nullopt;
}

template <auto kMember, auto kTake>
MaybeProblem read_span(JsonReader& in, const Field<LeaseRequest>& row, LeaseRequest& request) {
  return kTake(in, row.name, request.*kMember);
}

template <class T, auto kMember>
MaybeProblem read_name(JsonReader& in, const Field<T>& row, T& target) {
  if (MaybeProblem problem = take_text(in, row.name, target.*kMember)) return problem;
  if ((target.*kMember).size() <= Limits::kNameBytes) return std::nullopt;
  return make_problem("out_of_range", std::string(row.name) + ": the name is too long; allowed: at most 128 bytes",
                      std::string(row.name));
}

enum LeaseGroup : int { kQueueGroup = 1, kWaitGroup, kLeaseGroup };

constexpr auto kRequestRows = std::to_array<Field<LeaseRequest>>({
    row("queues", list_of(ref("QueueShare")), read_queue_shares).one_of(kQueueGroup).within(1, kMostQueues),
    row("queue", kStringType, read_one_queue).one_of(kQueueGroup),
    field<&LeaseRequest::max>("max").within(1, kMostLeases).otherwise("1"),
    row("wait", ref("Duration"), read_span<&LeaseRequest::wait, take_duration>)
        .one_of(kWaitGroup)
        .says("How long to wait for the first one."),
    row("wait_ms", kIntegerType, read_span<&LeaseRequest::wait, take_milliseconds>)
        .one_of(kWaitGroup)
        .within(0, kLongestWait.count()),
    row("lease", ref("Duration"), read_span<&LeaseRequest::lease, take_duration>).one_of(kLeaseGroup),
    row("lease_ms", kIntegerType, read_span<&LeaseRequest::lease, take_milliseconds>)
        .one_of(kLeaseGroup)
        .within(kShortestLease.count(), kLongestLease.count())
        .otherwise("15000"),
    row("worker", kStringType, read_name<LeaseRequest, &LeaseRequest::worker>).at_most(Limits::kNameBytes),
    row("poller", kStringType, read_name<LeaseRequest, &LeaseRequest::poller>)
        .at_most(Limits::kNameBytes)
        .says("Who polls. Ends its polls with /v1/leases/leave."),
    row("kinds", list_of(kStringType), read_kinds)
        .at_most(kMostKinds)
        .says("Only jobs of these, which may be patterns as of events: order.*; none: of all."),
});

MaybeProblem check_span(std::string_view field, Milliseconds span, Milliseconds least, Milliseconds most) {
  if (span >= least && span <= most) return std::nullopt;
  return make_problem("invalid_duration",
                      std::string(field) + " " + core::format_duration(span) + " is out of range; allowed: " +
                          core::format_duration(least) + " to " + core::format_duration(most),
                      std::string(field));
}

struct Leaving {
  std::string poller = {};
};
constexpr auto kLeaveRows = std::to_array<Field<Leaving>>({
    row("poller", kStringType, read_name<Leaving, &Leaving::poller>).always().within(1, Limits::kNameBytes),
});

// ---- Leases.

struct LeaseView {
  const Lease& lease;
  Milliseconds waited;
};
using LeaseRow = Field<LeaseView, Lease>;

template <auto kMember>
MaybeProblem read_lease_value(JsonReader& in, const LeaseRow& row, Lease& lease) {
  return read_value(in, row, lease.*kMember);
}
template <auto kMember>
void write_lease_value(JsonWriter& out, const LeaseRow& row, const LeaseView& view) {
  write_value(out.name(row.name), view.lease.*kMember);
}
template <auto kMember>
void write_set_lease_value(JsonWriter& out, const LeaseRow& row, const LeaseView& view) {
  if (view.lease.*kMember != std::remove_cvref_t<decltype(view.lease.*kMember)>{})
    write_lease_value<kMember>(out, row, view);
}

// In the order in which they are written, behind the fields of the job.
constexpr auto kLeaseRows = std::to_array<LeaseRow>({
    row<LeaseView, Lease>(
        "token", kStringType,
        [](JsonReader& in, const LeaseRow& row, Lease& lease) { return take_token(in, row.name, lease.token); },
        [](JsonWriter& out, const LeaseRow&, const LeaseView& view) { out.token(view.lease.token); })
        .always()
        .says("Digits. Goes with every extension and settlement."),
    row("attempt", kIntegerType, read_lease_value<&Lease::attempt>, write_lease_value<&Lease::attempt>).always(),
    row("due", kTimeType, read_lease_value<&Lease::due>, write_lease_value<&Lease::due>).always(),
    row<LeaseView, Lease>("age_ms", kIntegerType, read_lease_value<&Lease::age>,
                          [](JsonWriter& out, const LeaseRow& row, const LeaseView& view) {
                            out.field(row.name, view.lease.age + view.waited);
                          })
        .always()
        .says("How long ago the lease was given: its time runs from then."),
    row("counts", type_of<AttemptCounts>(), read_lease_value<&Lease::counts>, write_set_lease_value<&Lease::counts>),
    row("errors", list_of(type_of<AttemptError>()), read_lease_value<&Lease::history>,
        write_set_lease_value<&Lease::history>),
    row("steps", list_of(type_of<Step>()), read_lease_value<&Lease::steps>, write_set_lease_value<&Lease::steps>)
        .says("Done by earlier attempts."),
});

// ---- Keeping leases alive.

constexpr auto kRefRows = std::to_array<Field<LeaseRef>>({
    always<&LeaseRef::id>("id"),
    row<LeaseRef, LeaseRef>(
        "token", kTokenType,
        [](JsonReader& in, const auto& row, LeaseRef& lease) { return take_token(in, row.name, lease.token); },
        [](JsonWriter& out, const auto&, const LeaseRef& lease) { out.token(lease.token); })
        .always(),
});

MaybeProblem read_progress(JsonReader& in, const Field<Extension>& row, Extension& extension) {
  FieldReader<Progress> fields(rows_of<Progress>());
  Progress& progress = extension.progress.emplace();
  if (MaybeProblem problem = read_fields(in, fields, progress)) return problem;
  if (!in.ok()) return wrong_type(in, row.name);
  if (MaybeProblem problem = fields.find_missing()) return problem;
  if (progress.part >= 0 && progress.part <= 1) return std::nullopt;
  return make_problem("out_of_range", "progress: part is " + core::format_number(progress.part) + "; allowed: 0 to 1", "progress");
}

constexpr auto kExtensionRows = std::to_array<Field<Extension>>({
    field<&Extension::lease, &LeaseRef::id>("id").always(),
    row<Extension, Extension>(
        "token", kTokenType,
        [](JsonReader& in, const auto& row, Extension& extension) { return take_token(in, row.name, extension.lease.token); },
        [](JsonWriter& out, const auto&, const Extension& extension) { out.token(extension.lease.token); })
        .always(),
    row<Extension, Extension>("progress", type_of<Progress>(), read_progress,
                              [](JsonWriter& out, const auto& row, const Extension& extension) {
                                if (extension.progress) write_value(out.name(row.name), *extension.progress);
                              })
        .says("How far the attempt is."),
});

using Extensions = std::vector<Extension>;

MaybeProblem read_extensions(JsonReader& in, const Field<Extensions>& row, Extensions& extensions) {
  in.array();
  while (in.element()) {
    if (extensions.size() == kMostItems) return too_many_items(row.name, kMostItems);
    FieldReader<Extension> fields(kExtensionRows);
    MaybeProblem problem = read_fields(in, fields, extensions.emplace_back());
    if (!problem && in.ok()) problem = fields.find_missing();
    if (problem) return problem;
  }
  return wrong_type(in, row.name);
}

constexpr auto kExtendRows = std::to_array<Field<Extensions>>({
    row("leases", list_of(ref("Extension")), read_extensions).always().at_most(kMostItems),
});

// ---- Saving a body.

using SaveRow = Field<Nothing, SaveRequest>;

template <auto kMember, auto kTake>
MaybeProblem read_saver(JsonReader& in, const SaveRow& row, SaveRequest& request) {
  return kTake(in, row.name, request.lease.*kMember);
}
template <ContentForm kForm>
MaybeProblem read_saved(JsonReader& in, const SaveRow& row, SaveRequest& request) {
  return take_content(in, row.name, kForm, request.body);
}

enum SaveGroup : int { kSavedBody = 1 };

constexpr auto kSaveRows = std::to_array<SaveRow>({
    row("id", kUuidType, read_saver<&LeaseRef::id, take_id>).always(),
    row("token", kTokenType, read_saver<&LeaseRef::token, take_token>).always(),
    row("body", kAnyType, read_saved<ContentForm::kJson>).one_of(kSavedBody).says("Of the next attempt."),
    row("body_text", kStringType, read_saved<ContentForm::kText>).one_of(kSavedBody),
    row("body_base64", kStringType, read_saved<ContentForm::kBase64>).one_of(kSavedBody),
});

// ---- Saving what a step came to.

constexpr auto kStepRequestRows = std::to_array<Field<StepRequest>>({
    field<&StepRequest::lease, &LeaseRef::id>("id").always(),
    row<StepRequest, StepRequest>("token", kTokenType,
                                  [](JsonReader& in, const auto& row, StepRequest& request) {
                                    return take_token(in, row.name, request.lease.token);
                                  })
        .always(),
    field<&StepRequest::step, &Step::name>("name").always().says("Unique among the steps of the job."),
    field<&StepRequest::step, &Step::result>("result").one_of(1).says("As text."),
    row<StepRequest, StepRequest>("result_base64", kStringType,
                                  [](JsonReader& in, const auto& row, StepRequest& request) {
                                    return take_base64(in, row.name, request.step.result);
                                  })
        .one_of(1)
        .says("Bytes that are not text."),
});

// ---- What became of each lease.

constexpr auto kExtendedRows = std::to_array<Field<Extended>>({
    always<&Extended::lost>("lost").says("Not yours any more: stop."),
    always<&Extended::cancel_requested>("cancel_requested").says("Somebody cancelled the job: stop soon."),
});

}  // namespace

template <>
std::span<const Field<LeaseRef>> rows_of<LeaseRef>() {
  return kRefRows;
}
template <>
std::span<const Field<Extended>> rows_of<Extended>() {
  return kExtendedRows;
}
template <>
std::span<const Field<Extension>> rows_of<Extension>() {
  return kExtensionRows;
}

std::optional<Problem> read_lease_request(std::string_view body, LeaseRequest& request) {
  request = {};
  if (!is_blank(body)) {
    FieldReader<LeaseRequest> fields(kRequestRows);
    if (MaybeProblem problem = read_request(body, "", fields, request)) return problem;
  }
  if (request.queues.empty()) request.queues = {{"default", 1}};
  if (MaybeProblem problem = check_span("wait", request.wait, Milliseconds(0), kLongestWait)) return problem;
  return check_span("lease", request.lease, kShortestLease, kLongestLease);
}

std::string lease_request_json(const LeaseRequest& request) {
  return object_text([&](JsonWriter& out) {
    out.name("queues").begin_array();
    for (const QueueShare& share : request.queues) {
      out.begin_object().field("name", share.name).field("weight", share.weight).end_object();
    }
    out.end_array().field("max", request.max).field("wait_ms", request.wait).field("lease_ms", request.lease);
    if (!request.worker.empty()) out.field("worker", request.worker);
    if (!request.poller.empty()) out.field("poller", request.poller);
    if (!request.kinds.empty()) write_value(out.name("kinds"), request.kinds);
  });
}

std::string leases_json(const std::vector<Lease>& leases, Milliseconds waited, Milliseconds held) {
  std::size_t bytes = 64;
  for (const Lease& lease : leases) bytes += lease.job.body.size() + 420;
  const auto write_leases = [&](JsonWriter& out) {
    out.name("leases").begin_array();
    for (const Lease& lease : leases) {
      out.begin_object();
      write_fields(out, lease.job, Detail::kShown);
      write_rows(out, std::span<const LeaseRow>(kLeaseRows), LeaseView{lease, waited});
      out.end_object();
    }
    out.end_array().field("held_ms", held);
  };
  return object_text(write_leases, bytes);
}

Result<std::vector<Lease>> read_leases(std::string_view body, Milliseconds* held) {
  JsonReader in(body, kDeepestAnswer);
  std::vector<Lease> leases;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "held_ms" && held != nullptr) {
      std::int64_t ms = 0;
      if (take_integer(in, *name, INT64_MIN, INT64_MAX, ms)) in.fail("wrong_type", "held_ms is out of range");
      *held = Milliseconds(ms);
    } else if (*name == "leases") {
      in.array();
      while (in.element()) {
        read_answer_with_job(in, std::span<const LeaseRow>(kLeaseRows), leases.emplace_back());
      }
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(leases));
}

std::optional<Problem> read_leave_request(std::string_view body, std::string& poller) {
  Leaving leaving;
  FieldReader<Leaving> fields(kLeaveRows);
  if (MaybeProblem problem = read_request(body, "{\"poller\":\"...\"}", fields, leaving)) return problem;
  if (leaving.poller.empty()) return missing_field("poller");
  poller = std::move(leaving.poller);
  return std::nullopt;
}

std::string leave_request_json(std::string_view poller) {
  return object_text([&](JsonWriter& out) { out.field("poller", poller); });
}

std::optional<Problem> read_extend_request(std::string_view body, std::vector<Extension>& extensions) {
  FieldReader<Extensions> fields(kExtendRows);
  return read_request(body, "{\"leases\":[{\"id\":\"...\",\"token\":\"1\"}]}", fields, extensions);
}

std::string extend_request_json(const std::vector<Extension>& extensions) { return list_json("leases", extensions, 70); }

std::string extended_json(const std::vector<LeaseRef>& leases, const std::vector<Extended>& answers) {
  const auto write_answers = [&](JsonWriter& out) {
    out.name("leases").begin_array();
    for (std::size_t i = 0; i < leases.size() && i < answers.size(); ++i) {
      out.begin_object();
      write_rows(out, rows_of<LeaseRef>(), leases[i]);
      write_rows(out, rows_of<Extended>(), answers[i]);
      out.end_object();
    }
    out.end_array();
  };
  return object_text(write_answers, leases.size() * 110 + 16);
}

Result<std::vector<Extended>> read_extended(std::string_view body) { return read_list<Extended>(body, "leases"); }

std::optional<Problem> read_save_request(std::string_view body, SaveRequest& request) {
  FieldReader<Nothing, SaveRequest> fields(kSaveRows);
  if (MaybeProblem problem = read_request(body, R"({"id":"...","token":"1","body":{}})", fields, request)) return problem;
  const auto is_given = [&](const SaveRow& row) { return row.group == kSavedBody && fields.has(row); };
  return std::any_of(kSaveRows.begin(), kSaveRows.end(), is_given) ? std::nullopt : missing_field("body");
}

std::string save_request_json(const SaveRequest& request) {
  const auto write_save = [&](JsonWriter& out) {
    out.field("id", request.lease.id).token(request.lease.token);
    write_content(out, "body", request.body, "");
  };
  return object_text(write_save, request.body.size() + 100);
}

std::optional<Problem> read_step_request(std::string_view body, StepRequest& request) {
  FieldReader<StepRequest> fields(kStepRequestRows);
  return read_request(body, R"({"id":"...","token":"1","name":"charge","result":"..."})", fields, request);
}

std::string step_request_json(const StepRequest& request) {
  const auto write_step = [&](JsonWriter& out) {
    out.field("id", request.lease.id).token(request.lease.token);
    write_rows(out, rows_of<Step>(), request.step);
  };
  return object_text(write_step, request.step.result.size() + 100);
}

void add_lease_schemas(Schemas& schemas) {
  schemas.push_back({"LeaseRequest", object_schema({}, kRequestRows)});
  schemas.push_back({"QueueShare", any_of({type_schema(kStringType), object_schema({}, kShareRows)})});
  schemas.push_back({"LeaveRequest", object_schema({}, kLeaveRows)});
  schemas.push_back({"Left", object_schema(std::span<const FieldInfo>())});
  const SchemaOptions shown{.limits = false, .required = {"id", "queue"}};
  schemas.push_back({"Lease", object_schema(shown, shown_job_fields(), kLeaseRows)});
  const auto leases = std::to_array<Field<>>({
      shape("leases", list_of(ref("Lease"))).always(),
      shape("held_ms", kIntegerType)
          .always()
          .says("How long the request was here. What else it took, it was on its way."),
  });
  schemas.push_back({"Leases", object_schema({}, leases)});
  schemas.push_back({"Extension", object_schema({}, kExtensionRows)});
  schemas.push_back({"ExtendRequest", object_schema({}, kExtendRows)});
  schemas.push_back({"SaveRequest", object_schema({}, kSaveRows)});
  schemas.push_back({"StepRequest", object_schema({}, kStepRequestRows)});
  schemas.push_back({"Saved", object_schema(std::span<const FieldInfo>())});
  schemas.push_back({"ExtendedLease", object_schema({}, kRefRows, kExtendedRows)});
  schemas.push_back({"Extended", list_schema("leases", "ExtendedLease")});
}

}  // namespace bide::wire
