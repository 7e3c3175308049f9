#include "wire/lease_json.h"

#include <array>
#include <utility>

#include "core/duration.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "wire/answer.h"
#include "wire/info_json.h"
#include "wire/job_fields.h"
#include "wire/take_values.h"

namespace bide::wire {

namespace {

constexpr auto kRequestNames = std::to_array<std::string_view>(
    {"queues", "queue", "max", "wait", "wait_ms", "lease", "lease_ms", "worker", "poller"});
constexpr auto kShareNames = std::to_array<std::string_view>({"name", "weight"});
constexpr auto kRefNames = std::to_array<std::string_view>({"id", "token"});
constexpr auto kLeasesNames = std::to_array<std::string_view>({"leases"});

constexpr int kHeaviest = 1000;

MaybeProblem check_queue(const std::string& name, const LeaseRequest& request) {
  if (!core::is_name(name)) {
    return make_problem("invalid_queue_name",
                        "invalid queue name " + core::quoted(name) +
                            "; allowed: 1 to 128 of A-Z a-z 0-9 _ - . : and neither a dot nor a colon at the start",
                        "queues");
  }
  for (const QueueShare& share : request.queues) {
    if (share.name == name) {
      return make_problem("invalid_argument",
                          "queues: " + core::quoted(name) + " is named twice; give it a weight instead", "queues");
    }
  }
  return std::nullopt;
}

MaybeProblem take_share(JsonReader& in, LeaseRequest& request) {
  QueueShare share;
  if (in.type() == JsonReader::Type::kString) {
    share.name = in.string();
  } else {
    in.object();
    while (const auto name = in.field()) {
      MaybeProblem problem;
      if (*name == "name") {
        problem = take_text(in, "queues.name", share.name);
      } else if (*name == "weight") {
        std::int64_t weight = 1;
        problem = take_whole(in, "queues.weight", 1, kHeaviest, weight);
        share.weight = static_cast<int>(weight);
      } else {
        problem = unknown_field(*name, kShareNames);
      }
      if (problem) return problem;
    }
  }
  if (!in.ok()) return wrong_type(in, "queues");
  if (MaybeProblem problem = check_queue(share.name, request)) return problem;
  request.queues.push_back(std::move(share));
  return std::nullopt;
}

MaybeProblem take_queues(JsonReader& in, LeaseRequest& request) {
  in.array();
  while (in.element()) {
    if (request.queues.size() == kMostQueues) {
      return make_problem("out_of_range", "queues: at most " + std::to_string(kMostQueues) + " are allowed", "queues");
    }
    if (MaybeProblem problem = take_share(in, request)) return problem;
  }
  if (!in.ok()) return wrong_type(in, "queues");
  if (request.queues.empty()) {
    return make_problem("missing_field", "queues is empty; name at least one, or leave it out for 'default'", "queues");
  }
  return std::nullopt;
}

MaybeProblem check_span(std::string_view field, Milliseconds span, Milliseconds least, Milliseconds most) {
  if (span >= least && span <= most) return std::nullopt;
  return make_problem("invalid_duration",
                      std::string(field) + " " + core::format_duration(span) + " is out of range; allowed: " +
                          core::format_duration(least) + " to " + core::format_duration(most),
                      std::string(field));
}

MaybeProblem take_poller(JsonReader& in, std::string& poller) {
  if (MaybeProblem problem = take_text(in, "poller", poller)) return problem;
  if (poller.size() <= Limits::kNameBytes) return std::nullopt;
  return make_problem("out_of_range", "poller: the name is too long; allowed: at most 128 bytes", "poller");
}

MaybeProblem take_request_field(JsonReader& in, std::string_view name, LeaseRequest& request) {
  if (name == "queues") return take_queues(in, request);
  if (name == "queue") {
    QueueShare share;
    if (MaybeProblem problem = take_text(in, "queue", share.name)) return problem;
    if (!in.ok()) return std::nullopt;
    if (MaybeProblem problem = check_queue(share.name, request)) return problem;
    request.queues.push_back(std::move(share));
    return std::nullopt;
  }
  if (name == "max") {
    std::int64_t max = 1;
    MaybeProblem problem = take_whole(in, "max", 1, kMostLeases, max);
    request.max = static_cast<int>(max);
    return problem;
  }
  if (name == "wait") return take_duration(in, "wait", request.wait);
  if (name == "wait_ms") return take_milliseconds(in, "wait_ms", request.wait);
  if (name == "lease") return take_duration(in, "lease", request.lease);
  if (name == "lease_ms") return take_milliseconds(in, "lease_ms", request.lease);
  if (name == "worker") {
    if (MaybeProblem problem = take_text(in, "worker", request.worker)) return problem;
    if (request.worker.size() > Limits::kNameBytes) {
      return make_problem("out_of_range", "worker: the name is too long; allowed: at most 128 bytes", "worker");
    }
    return std::nullopt;
  }
  if (name == "poller") return take_poller(in, request.poller);
  return unknown_field(name, kRequestNames);
}

}  // namespace

std::optional<Problem> read_lease_request(std::string_view body, LeaseRequest& request) {
  request = {};
  if (!is_blank(body)) {
    JsonReader in(body);
    std::uint32_t seen = 0;
    MaybeProblem problem;
    in.object();
    while (const auto given = in.field()) {
      const std::string name(*given);
      for (std::size_t i = 0; i < kRequestNames.size(); ++i) {
        if (kRequestNames[i] != name) continue;
        if ((seen >> i & 1) != 0) problem = duplicate_field(name);
        seen |= 1u << i;
      }
      if (!problem) problem = take_request_field(in, name, request);
      if (problem) break;
    }
    if (!problem) in.end();
    if (MaybeProblem wrong = problem_in(in, problem)) return wrong;
    const auto both = [seen](unsigned a, unsigned b) { return (seen >> a & 1) != 0 && (seen >> b & 1) != 0; };
    if (both(0, 1)) return conflicting_fields("queues", "queue");
    if (both(3, 4)) return conflicting_fields("wait", "wait_ms");
    if (both(5, 6)) return conflicting_fields("lease", "lease_ms");
  }
  if (request.queues.empty()) request.queues = {{"default", 1}};
  if (MaybeProblem problem = check_span("wait", request.wait, Milliseconds(0), kLongestWait)) return problem;
  return check_span("lease", request.lease, kShortestLease, kLongestLease);
}

std::string lease_request_json(const LeaseRequest& request) {
  std::string text;
  JsonWriter out(text);
  out.begin_object().name("queues").begin_array();
  for (const QueueShare& share : request.queues) {
    out.begin_object().field("name", share.name).field("weight", share.weight).end_object();
  }
  out.end_array().field("max", request.max).field("wait_ms", request.wait).field("lease_ms", request.lease);
  if (!request.worker.empty()) out.field("worker", request.worker);
  if (!request.poller.empty()) out.field("poller", request.poller);
  out.end_object();
  return text;
}

namespace {

void write(JsonWriter& out, const Lease& lease, Milliseconds waited) {
  out.begin_object();
  write_fields(out, lease.job, Detail::kShown);
  out.token(lease.token);
  out.field("attempt", lease.attempt).field("due", lease.due).field("age_ms", lease.age + waited);
  if (lease.counts != AttemptCounts{}) {
    out.name("counts");
    write(out, lease.counts);
  }
  if (!lease.history.empty()) {
    out.name("errors");
    write(out, lease.history);
  }
  out.end_object();
}

std::uint64_t answer_token(JsonReader& in) {
  std::uint64_t token = 0;
  if (take_token(in, "token", token)) in.fail("wrong_type", "a token is not a number");
  return token;
}

Lease read_lease(JsonReader& in) {
  Lease lease;
  JobFields fields(lease.job);
  in.object();
  while (const auto name = in.field()) {
    if (*name == "token") {
      lease.token = answer_token(in);
    } else if (*name == "attempt") {
      lease.attempt = answer_number<std::uint32_t>(in);
    } else if (*name == "due") {
      lease.due = answer_time(in);
    } else if (*name == "age_ms") {
      lease.age = answer_milliseconds(in);
    } else if (*name == "counts") {
      lease.counts = read_counts(in);
    } else if (*name == "errors") {
      lease.history = read_history(in);
    } else {
      bool known = false;
      if (const MaybeProblem problem = fields.take(in, *name, known)) in.fail("wrong_type", problem->detail);
      if (!known) in.raw();
    }
  }
  (void)fields.finish();
  return lease;
}

}  // namespace

std::string leases_json(const std::vector<Lease>& leases, Milliseconds waited, Milliseconds held) {
  std::size_t bytes = 16;
  for (const Lease& lease : leases) bytes += lease.job.body.size() + 420;
  std::string text;
  text.reserve(bytes);
  JsonWriter out(text);
  out.begin_object().name("leases").begin_array();
  for (const Lease& lease : leases) write(out, lease, waited);
  out.end_array().field("held_ms", held).end_object();
  return text;
}

Result<std::vector<Lease>> read_leases(std::string_view body, Milliseconds* held) {
  JsonReader in(body, kDeepestAnswer);
  std::vector<Lease> leases;
  in.object();
  while (const auto name = in.field()) {
    if (*name == "held_ms" && held != nullptr) {
      *held = answer_milliseconds(in);
      continue;
    }
    if (*name != "leases") {
      in.raw();
      continue;
    }
    in.array();
    while (in.element()) leases.push_back(read_lease(in));
  }
  return checked(in, std::move(leases));
}

std::optional<Problem> read_leave_request(std::string_view body, std::string& poller) {
  constexpr auto kLeaveNames = std::to_array<std::string_view>({"poller"});
  if (is_blank(body)) return empty_body("{\"poller\":\"...\"}");
  JsonReader in(body);
  const auto take_all = [&]() -> MaybeProblem {
    bool there = false;
    in.object();
    while (const auto name = in.field()) {
      if (*name != "poller") return unknown_field(*name, kLeaveNames);
      if (std::exchange(there, true)) return duplicate_field("poller");
      if (MaybeProblem problem = take_poller(in, poller)) return problem;
    }
    in.end();
    if (in.ok() && poller.empty()) return make_problem("missing_field", "poller is missing", "poller");
    return std::nullopt;
  };
  MaybeProblem problem = take_all();
  return problem_in(in, std::move(problem));
}

std::string leave_request_json(std::string_view poller) {
  std::string text;
  JsonWriter(text).begin_object().field("poller", poller).end_object();
  return text;
}

std::optional<Problem> read_extend_request(std::string_view body, std::vector<LeaseRef>& leases) {
  if (is_blank(body)) return empty_body("{\"leases\":[{\"id\":\"...\",\"token\":\"1\"}]}");
  JsonReader in(body);
  const auto take_ref = [&in](LeaseRef& ref) -> MaybeProblem {
    bool has_id = false;
    bool has_token = false;
    in.object();
    while (const auto name = in.field()) {
      MaybeProblem problem;
      if (*name == "id") {
        problem = std::exchange(has_id, true) ? duplicate_field("id") : take_id(in, "id", ref.id);
      } else if (*name == "token") {
        problem = std::exchange(has_token, true) ? duplicate_field("token") : take_token(in, "token", ref.token);
      } else {
        problem = unknown_field(*name, kRefNames);
      }
      if (problem) return problem;
    }
    if (!in.ok()) return std::nullopt;
    if (!has_id) return make_problem("missing_field", "leases: id is missing", "id");
    if (!has_token) return make_problem("missing_field", "leases: token is missing", "token");
    return std::nullopt;
  };
  const auto take_all = [&]() -> MaybeProblem {
    bool there = false;
    in.object();
    while (const auto name = in.field()) {
      if (*name != "leases") return unknown_field(*name, kLeasesNames);
      if (std::exchange(there, true)) return duplicate_field("leases");
      in.array();
      while (in.element()) {
        if (leases.size() == kMostItems) {
          return make_problem("too_many_items", "leases: at most " + std::to_string(kMostItems) + " at a time",
                              "leases");
        }
        if (MaybeProblem problem = take_ref(leases.emplace_back())) return problem;
      }
      if (MaybeProblem problem = wrong_type(in, "leases")) return problem;
    }
    if (in.ok() && !there) return make_problem("missing_field", "leases is missing", "leases");
    in.end();
    return std::nullopt;
  };
  MaybeProblem problem = take_all();
  return problem_in(in, std::move(problem));
}

std::string extend_request_json(const std::vector<LeaseRef>& leases) {
  std::string text;
  text.reserve(leases.size() * 70 + 16);
  JsonWriter out(text);
  out.begin_object().name("leases").begin_array();
  for (const LeaseRef& ref : leases) {
    out.begin_object().field("id", ref.id);
    out.token(ref.token);
    out.end_object();
  }
  out.end_array().end_object();
  return text;
}

std::string extended_json(const std::vector<LeaseRef>& leases, const std::vector<Extended>& answers) {
  std::string text;
  text.reserve(leases.size() * 110 + 16);
  JsonWriter out(text);
  out.begin_object().name("leases").begin_array();
  for (std::size_t i = 0; i < leases.size() && i < answers.size(); ++i) {
    out.begin_object().field("id", leases[i].id);
    out.token(leases[i].token);
    out.field("lost", answers[i].lost).field("cancel_requested", answers[i].cancel_requested).end_object();
  }
  out.end_array().end_object();
  return text;
}

Result<std::vector<Extended>> read_extended(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  std::vector<Extended> answers;
  in.object();
  while (const auto name = in.field()) {
    if (*name != "leases") {
      in.raw();
      continue;
    }
    in.array();
    while (in.element()) {
      Extended& extended = answers.emplace_back();
      in.object();
      while (const auto field = in.field()) {
        if (*field == "lost") {
          extended.lost = in.boolean();
        } else if (*field == "cancel_requested") {
          extended.cancel_requested = in.boolean();
        } else {
          in.raw();
        }
      }
    }
  }
  return checked(in, std::move(answers));
}

}  // namespace bide::wire
