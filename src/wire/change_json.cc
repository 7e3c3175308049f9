#include "wire/change_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/job_rules.h"
#include "wire/filter_query.h"
#include "wire/lease_json.h"
#include "wire/take_values.h"

namespace bide::wire {

namespace {

constexpr auto kReschedule = std::to_array<std::string_view>({"due", "delay", "delay_ms"});
constexpr auto kCancel = std::to_array<std::string_view>({"ids", "state"});
constexpr auto kFilter = std::to_array<std::string_view>({"state", "queue", "kind", "error", "since", "until"});
constexpr auto kReplay =
    std::to_array<std::string_view>({"ids", "filter", "limit", "dry_run", "keep_attempts", "delay", "delay_ms"});
constexpr std::size_t kChoiceOnly = 4;

// Calls take(name) for each field of the body, which is one object with these fields and no others.
template <class Take>
MaybeProblem read_object(std::string_view body, std::string_view wanted, std::span<const std::string_view> names,
                         Take take) {
  if (is_blank(body)) return empty_body(wanted);
  JsonReader in(body);
  std::uint32_t seen = 0;
  in.object();
  while (const auto given = in.field()) {
    const auto found = std::find(names.begin(), names.end(), *given);
    if (found == names.end()) return unknown_field(*given, names);
    const std::uint32_t bit = 1u << (found - names.begin());
    if ((seen & bit) != 0) return duplicate_field(*found);
    seen |= bit;
    MaybeProblem problem = take(in, *found);
    if (problem) return problem;
  }
  in.end();
  return problem_in(in, std::nullopt);
}

MaybeProblem take_ids(JsonReader& in, std::vector<JobId>& ids) {
  in.array();
  while (in.element()) {
    if (ids.size() == kMostItems) {
      return make_problem("too_many_items", "ids: at most " + std::to_string(kMostItems) + " at a time", "ids");
    }
    if (MaybeProblem problem = take_id(in, "ids", ids.emplace_back())) return problem;
  }
  return in.ok() ? std::nullopt : wrong_type(in, "ids");
}

MaybeProblem take_filter(JsonReader& in, JobFilter& filter) {
  in.object();
  while (const auto given = in.field()) {
    const auto found = std::find(kFilter.begin(), kFilter.end(), *given);
    if (found == kFilter.end()) return unknown_field(*given, kFilter);
    std::string value;
    if (MaybeProblem problem = take_text(in, *found, value)) return problem;
    if (MaybeProblem problem = read_filter_field(*found, value, filter)) return problem;
  }
  return in.ok() ? std::nullopt : wrong_type(in, "filter");
}

MaybeProblem read_chosen(std::string_view body, std::size_t names, ReplayRequest& request) {
  bool has_ids = false;
  bool has_limit = false;
  bool has_delay = false;
  Choice& choice = request.choice;
  const auto take = [&](JsonReader& in, std::string_view name) -> MaybeProblem {
    if (name == "ids") {
      has_ids = true;
      return take_ids(in, choice.ids);
    }
    if (name == "filter") return take_filter(in, choice.filter.emplace());
    if (name == "limit") {
      has_limit = true;
      std::int64_t limit = 0;
      MaybeProblem problem = take_whole(in, "limit", 1, std::int64_t{1} << 53, limit);
      choice.limit = static_cast<std::uint64_t>(limit);
      return problem;
    }
    if (name == "dry_run") return take_boolean(in, name, choice.dry_run);
    if (name == "keep_attempts") return take_boolean(in, name, request.options.keep_attempts);
    if (std::exchange(has_delay, true)) return conflicting_fields("delay", "delay_ms");
    return name == "delay" ? take_duration(in, name, request.options.delay)
                           : take_milliseconds(in, name, request.options.delay);
  };
  constexpr std::string_view kWanted = "{\"ids\":[\"...\"]} or {\"filter\":{}}";
  if (MaybeProblem problem = read_object(body, kWanted, std::span(kReplay).first(names), take)) return problem;
  if (has_ids && choice.filter) return conflicting_fields("ids", "filter");
  if (has_ids && has_limit) return conflicting_fields("ids", "limit");
  if (has_ids && choice.dry_run) return conflicting_fields("ids", "dry_run");
  if (!has_ids && !choice.filter) {
    return make_problem("missing_field", "say which: ids, or a filter; {\"filter\":{}} means all", "ids");
  }
  if (request.options.delay > Limits::kDelay) {
    return make_problem("too_far", "delay is too far away; allowed: 0 to 36500d (100 years)", "delay");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> read_reschedule(std::string_view body, Time now, Time& due) {
  std::string_view given;
  const auto take = [&](JsonReader& in, std::string_view name) -> MaybeProblem {
    if (!given.empty()) return conflicting_fields(given, name);
    given = name;
    if (name == "due") return take_time(in, name, due);
    Milliseconds delay{0};
    MaybeProblem problem = name == "delay" ? take_duration(in, name, delay) : take_milliseconds(in, name, delay);
    if (!problem && delay > Limits::kDelay) {
      return make_problem("too_far", "delay is too far away; allowed: 0 to 36500d (100 years)", std::string(name));
    }
    due = now + delay;
    return problem;
  };
  if (MaybeProblem problem =
          read_object(body, "{\"due\":\"2026-01-02T03:04:05Z\"} or {\"delay\":\"10m\"}", kReschedule, take)) {
    return problem;
  }
  if (given.empty()) return make_problem("missing_field", "due is missing; give due or delay", "due");
  // Checked as if it were that of a new job.
  if (auto problem = core::find_problem(Job{.kind = "any", .due = due}, now)) {
    return make_problem(problem->code, std::move(problem->message), std::string(problem->field));
  }
  return std::nullopt;
}

std::string reschedule_json(Time due) {
  std::string text;
  JsonWriter(text).begin_object().field("due", due).end_object();
  return text;
}

std::optional<Problem> read_cancel(std::string_view body, std::vector<JobId>& ids, CancelOptions& options) {
  bool has_ids = false;
  const auto take = [&](JsonReader& in, std::string_view name) -> MaybeProblem {
    if (name == "ids") {
      has_ids = true;
      return take_ids(in, ids);
    }
    std::string state;
    if (MaybeProblem problem = take_text(in, name, state)) return problem;
    return read_state(state, options.state.emplace());
  };
  if (MaybeProblem problem = read_object(body, "{\"ids\":[\"...\"]}", kCancel, take)) return problem;
  if (!has_ids) return make_problem("missing_field", "ids is missing", "ids");
  return std::nullopt;
}

std::string cancel_json(const std::vector<JobId>& ids, const CancelOptions& options) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().name("ids").begin_array();
  for (const JobId& id : ids) out.string(id.to_string());
  out.end_array();
  if (options.state) out.field("state", to_string(*options.state));
  out.end_object();
  return text;
}

std::optional<Problem> read_choice(std::string_view body, Choice& choice) {
  ReplayRequest request;
  MaybeProblem problem = read_chosen(body, kChoiceOnly, request);
  choice = std::move(request.choice);
  return problem;
}

std::optional<Problem> read_replay(std::string_view body, ReplayRequest& request) {
  return read_chosen(body, kReplay.size(), request);
}

std::string replay_json(const std::vector<JobId>& ids, const ReplayOptions& options) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().name("ids").begin_array();
  for (const JobId& id : ids) out.string(id.to_string());
  out.end_array();
  if (options.keep_attempts) out.field("keep_attempts", true);
  if (options.delay.count() > 0) out.field("delay_ms", options.delay);
  out.end_object();
  return text;
}

}  // namespace bide::wire
