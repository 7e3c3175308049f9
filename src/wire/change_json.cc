#include "wire/change_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/dead_grouping.h"
#include "core/quote.h"
#include "wire/fields.h"
#include "wire/filter_query.h"
#include "wire/job_json.h"
#include "wire/lease_json.h"

namespace bide::wire {

namespace {

using Ids = std::vector<JobId>;

constexpr std::int64_t kMostSwept = std::int64_t{1} << 53;

MaybeProblem too_far(std::string_view field) {
  return make_problem("too_far", "delay is too far away; allowed: 0 to 36500d (100 years)", std::string(field));
}

// ---- A choice of jobs, and what cancel and replay add to it.

MaybeProblem read_filter_value(JsonReader& in, const Field<JobFilter>& row, JobFilter& filter) {
  std::string value;
  if (MaybeProblem problem = take_text(in, row.name, value)) return problem;
  return read_filter_field(row.name, value, filter);
}

MaybeProblem read_filter_headers(JsonReader& in, const Field<JobFilter>& row, JobFilter& filter) {
  return take_headers(in, row.name, filter.headers);
}

constexpr auto kFilterRows = std::to_array<Field<JobFilter>>({
    row("state", kStringType, read_filter_value),
    row("queue", kStringType, read_filter_value),
    row("kind", kStringType, read_filter_value),
    row("group", kStringType, read_filter_value),
    row("flow", kUuidType, read_filter_value),
    row("headers", ref("Headers"), read_filter_headers).says("All of these, with these values."),
    row("error", kStringType, read_filter_value).says("Contained in the newest error text."),
    row("since", kTimeType, read_filter_value),
    row("until", kTimeType, read_filter_value),
});

MaybeProblem read_filter(JsonReader& in, const Field<ChangeRequest>& row, ChangeRequest& request) {
  FieldReader<JobFilter> fields(kFilterRows);
  if (MaybeProblem problem = read_fields(in, fields, request.choice.filter.emplace())) return problem;
  return wrong_type(in, row.name);
}

template <auto kTake>
MaybeProblem read_replay_delay(JsonReader& in, const Field<ChangeRequest>& row, ChangeRequest& request) {
  return kTake(in, row.name, request.replay.delay);
}

MaybeProblem read_cancel_state(JsonReader& in, const Field<ChangeRequest>& row, ChangeRequest& request) {
  std::string state;
  if (MaybeProblem problem = take_text(in, row.name, state)) return problem;
  return read_state(state, request.cancel.state.emplace());
}

constexpr auto kChangeRows = std::to_array<Field<ChangeRequest>>({
    row("state", type_of<JobState>(), read_cancel_state)
        .says("Only those that are in this state at that moment; of ids, the others are answered 409."),
    field<&ChangeRequest::choice, &Choice::ids>("ids").at_most(kMostItems),
    row("filter", ref("Filter"), read_filter),
    field<&ChangeRequest::choice, &Choice::limit>("limit").within(1, kMostSwept),
    field<&ChangeRequest::choice, &Choice::dry_run>("dry_run"),
    field<&ChangeRequest::replay, &ReplayOptions::keep_attempts>("keep_attempts").otherwise("false"),
    row("delay", ref("Duration"), read_replay_delay<take_duration>).one_of(1),
    row("delay_ms", kIntegerType, read_replay_delay<take_milliseconds>).one_of(1).at_least(0),
    field<&ChangeRequest::choice, &Choice::like>("like").says(
        "Only the group of dead jobs with this id, or the group that the job with this id is in."),
});
// Of the dead.
constexpr std::array kDeleteRows = {kChangeRows[1], kChangeRows[2], kChangeRows[3], kChangeRows[4], kChangeRows.back()};
constexpr auto kCancelRows = std::span<const Field<ChangeRequest>>(kChangeRows).first(5);
constexpr auto kChoiceRows = std::span<const Field<ChangeRequest>>(kDeleteRows);
constexpr auto kReplayRows = std::span<const Field<ChangeRequest>>(kChangeRows).subspan(1);
constexpr auto kFlowReplayRows = kReplayRows.subspan(3, 4);
constexpr auto kFlowCancelRows = kFlowReplayRows.first(1);

MaybeProblem read_chosen(std::string_view body, std::span<const Field<ChangeRequest>> rows, ChangeRequest& request) {
  FieldReader<ChangeRequest> fields(rows);
  if (MaybeProblem problem = read_request(body, "{\"ids\":[\"...\"]} or {\"filter\":{}}", fields, request)) {
    return problem;
  }
  Choice& choice = request.choice;
  const bool has_like = fields.find("like") != nullptr && fields.has("like");
  if (has_like && !core::is_dead_group_id(choice.like) && !JobId::parse(choice.like)) {
    return make_problem("invalid_argument",
                        "like: the id of a group of dead jobs, or of a job of it, not " + core::quoted(choice.like), "like");
  }
  if (has_like && !choice.filter) choice.filter.emplace();
  if (fields.has("ids")) {
    if (has_like) return conflicting_fields("ids", "like");
    if (choice.filter) return conflicting_fields("ids", "filter");
    if (fields.has("limit")) return conflicting_fields("ids", "limit");
    if (choice.dry_run) return conflicting_fields("ids", "dry_run");
  } else if (!choice.filter) {
    return make_problem("missing_field", "say which: ids, or a filter; {\"filter\":{}} means all", "ids");
  }
  if (request.replay.delay > Limits::kDelay) return too_far("delay");
  return std::nullopt;
}

MaybeProblem read_options(std::string_view body, std::span<const Field<ChangeRequest>> rows, ChangeRequest& request) {
  if (is_blank(body)) return std::nullopt;
  FieldReader<ChangeRequest> fields(rows);
  if (MaybeProblem problem = read_request(body, "", fields, request)) return problem;
  return request.replay.delay > Limits::kDelay ? too_far("delay") : std::nullopt;
}

std::string ids_json(const Ids& ids, auto options) {
  return object_text([&](JsonWriter& out) {
    write_value(out.name("ids"), ids);
    options(out);
  });
}

}  // namespace

std::optional<Problem> read_cancel(std::string_view body, ChangeRequest& request) {
  return read_chosen(body, kCancelRows, request);
}

std::string cancel_json(const std::vector<JobId>& ids, const CancelOptions& options) {
  return ids_json(ids, [&](JsonWriter& out) {
    if (options.state) out.field("state", to_string(*options.state));
  });
}

std::optional<Problem> read_choice(std::string_view body, Choice& choice) {
  ChangeRequest request;
  MaybeProblem problem = read_chosen(body, kChoiceRows, request);
  choice = std::move(request.choice);
  return problem;
}

std::optional<Problem> read_replay(std::string_view body, ChangeRequest& request) {
  return read_chosen(body, kReplayRows, request);
}

std::optional<Problem> read_flow_cancel(std::string_view body, ChangeRequest& request) {
  return read_options(body, kFlowCancelRows, request);
}

std::optional<Problem> read_flow_replay(std::string_view body, ChangeRequest& request) {
  return read_options(body, kFlowReplayRows, request);
}

std::string replay_json(const std::vector<JobId>& ids, const ReplayOptions& options) {
  return ids_json(ids, [&](JsonWriter& out) {
    if (options.keep_attempts) out.field("keep_attempts", true);
    if (options.delay.count() > 0) out.field("delay_ms", options.delay);
  });
}

void add_change_schemas(Schemas& schemas) {
  schemas.push_back({"Cancel", object_schema({}, kCancelRows)});
  schemas.push_back({"Filter", object_schema({}, kFilterRows)});
  schemas.push_back({"Choice", object_schema({}, kChoiceRows)});
  schemas.push_back({"Replay", object_schema({}, kReplayRows)});
  schemas.push_back({"FlowCancel", object_schema({}, kFlowCancelRows)});
  schemas.push_back({"FlowReplay", object_schema({}, kFlowReplayRows)});
}

}  // namespace bide::wire
