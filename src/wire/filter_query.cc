#include "wire/filter_query.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/did_you_mean.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "core/time_text.h"
#include "core/url_escape.h"
#include "wire/take_values.h"

namespace bide::wire {

namespace {

using core::quoted;

constexpr auto kNames =
    std::to_array<std::string_view>({"state", "queue", "kind", "group", "flow", "header.NAME", "error", "since", "until", "cursor", "limit", "bodies"});
constexpr std::string_view kHeaderName = "header.";
constexpr std::array kStates = {JobState::kScheduled, JobState::kReady, JobState::kRunning, JobState::kDone,
                                JobState::kDead, JobState::kWaiting};

Problem invalid(std::string_view name, const std::string& text) {
  return make_problem("invalid_parameter", std::string(name) + ": " + text, std::string(name));
}

}  // namespace

std::optional<Problem> take_limit(const std::string& text, std::size_t& out) {
  const auto limit = parse_whole(text);
  if (!limit || *limit < 1 || *limit > static_cast<std::int64_t>(kLongestPage)) {
    return make_problem(
        "invalid_limit",
        "invalid limit " + quoted(text) + "; allowed: a whole number from 1 to " + std::to_string(kLongestPage),
        "limit");
  }
  out = static_cast<std::size_t>(*limit);
  return std::nullopt;
}

std::optional<Problem> read_state(std::string_view text, JobState& out) {
  std::vector<std::string_view> names;
  for (const JobState state : kStates) {
    names.push_back(to_string(state));
    if (names.back() != text) continue;
    out = state;
    return std::nullopt;
  }
  return invalid("state", "unknown state " + quoted(text) + "; allowed: scheduled, ready, running, done, dead, waiting" +
                              core::did_you_mean(text, names));
}

std::optional<Problem> find_name_problem(const Job& named) { return problem_of(core::find_problem(named, Time())); }

std::optional<Problem> read_filter_field(std::string_view name, std::string_view value, JobFilter& filter) {
  if (value.empty()) return std::nullopt;
  if (name == "state") {
    while (true) {
      const std::size_t comma = value.find(',');
      if (MaybeProblem problem = read_state(value.substr(0, comma), filter.states.emplace_back())) return problem;
      if (comma == std::string_view::npos) return std::nullopt;
      value.remove_prefix(comma + 1);
    }
  }
  if (name == "queue") {
    filter.queue = value;
    return find_name_problem({.kind = "any", .queue = filter.queue});
  }
  if (name == "kind") {
    filter.kind = value;
    return find_name_problem({.kind = filter.kind});
  }
  if (name == "flow") {
    const auto id = JobId::parse(value);
    if (!id) return invalid(name, id.error().message);
    filter.flow = *id;
    return std::nullopt;
  }
  if (name == "error" || name == "group") {
    (name == "error" ? filter.error : filter.group) = value;
  } else {
    const auto time = core::parse_time(value);
    if (!time) return invalid(name, time.error().message);
    (name == "since" ? filter.since : filter.until) = *time;
  }
  return std::nullopt;
}

std::optional<Problem> read_list_query(const std::map<std::string, std::string>& query, ListRequest& request) {
  request.filter.bodies = false;
  for (const auto& [name, value] : query) {
    if (name.size() > kHeaderName.size() && name.starts_with(kHeaderName)) {
      request.filter.headers.emplace_back(name.substr(kHeaderName.size()), value);
      continue;
    }
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
      return make_problem("unknown_parameter", "unknown parameter " + quoted(name) + core::did_you_mean(name, kNames),
                          name);
    }
    if (name == "limit") {
      if (MaybeProblem problem = take_limit(value, request.limit)) return problem;
    } else if (name == "bodies") {
      if (value != "true" && value != "false") {
        return invalid(name, quoted(value) + " is neither true nor false");
      }
      request.filter.bodies = value == "true";
    } else if (name == "cursor") {
      request.cursor = value;
    } else if (MaybeProblem problem = read_filter_field(name, value, request.filter)) {
      return problem;
    }
  }
  return std::nullopt;
}

std::string list_query(const ListRequest& request) {
  std::string query = "limit=" + std::to_string(request.limit);
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) query += "&" + std::string(name) + "=" + core::escape_url(value);
  };
  const JobFilter& filter = request.filter;
  std::string states;
  for (const JobState state : filter.states) states += (states.empty() ? "" : ",") + std::string(to_string(state));
  if (!states.empty()) query += "&state=" + states;
  add("queue", filter.queue);
  add("kind", filter.kind);
  add("group", filter.group);
  if (!filter.flow.is_nil()) add("flow", filter.flow.to_string());
  // Also an empty value: it is not the same as none.
  for (const auto& [name, value] : filter.headers) {
    query += "&" + std::string(kHeaderName) + core::escape_url(name) + "=" + core::escape_url(value);
  }
  add("error", filter.error);
  if (filter.since) add("since", core::format_time(*filter.since));
  if (filter.until) add("until", core::format_time(*filter.until));
  if (filter.bodies) query += "&bodies=true";
  add("cursor", request.cursor);
  return query;
}

}  // namespace bide::wire
