#include "engine/check/record_check.h"

#include <array>

#include "engine/check/bytes.h"

namespace bide::engine::check {

namespace {

using Problem = std::optional<std::string>;

constexpr std::uint64_t kMostErrors = 10;
constexpr std::uint64_t kMostSteps = 100;
constexpr std::uint64_t kMostAttempts = 10'000;
constexpr std::int8_t kMostPriority = 100;

void skip_time(Bytes& in) { in.u64(); }

Problem check_past(Bytes& in) {
  for (int i = 0; i < 4; ++i) in.count();
  const std::uint64_t errors = in.count();
  if (errors > kMostErrors) return "more errors than are ever kept";
  for (std::uint64_t i = 0; i < errors && in.ok(); ++i) {
    in.count();
    skip_time(in);
    if (in.u8() > 3) return "an unknown fault";
    in.string();
  }
  in.string();
  return std::nullopt;
}

Problem check_retry(Bytes& in) {
  const std::uint8_t flags = in.u8();
  if (flags >= 32) return "unknown flags of a retry policy";
  if (in.count() > kMostAttempts) return "too many attempts";
  if (flags & 4) in.u64();
  if (flags & 8) in.u64();
  if (flags & 16) in.count();
  const std::uint64_t waits = in.count();
  if (waits > kMostSteps) return "too many steps";
  for (std::uint64_t i = 0; i < waits && in.ok(); ++i) in.count();
  return std::nullopt;
}

void skip_headers(Bytes& in) {
  const std::uint64_t headers = in.count();
  for (std::uint64_t i = 0; i < headers && in.ok(); ++i) {
    in.string();
    in.string();
  }
}

Problem accepted(Bytes& in, std::uint8_t version, RecordFacts& facts) {
  facts.ids = {in.id()};
  const std::uint8_t flags = in.u8();
  const std::uint8_t more = in.u8();
  if (more >= 16) return "unknown flags";
  const std::uint8_t relations = version > 1 ? in.u8() : 0;
  if (relations >= 32) return "unknown flags";
  skip_time(in);
  in.count();
  if (in.string().empty()) return "a job without a kind";
  if (flags & 1) in.string();
  if (flags & 2) in.string();
  if (flags & 4) {
    const auto priority = static_cast<std::int8_t>(in.u8());
    if (priority > kMostPriority || priority < -kMostPriority) return "a priority out of range";
  }
  if (relations & 1) in.string();
  if (relations & 2) {
    for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) in.id();
    if (in.u8() > 2) return "an unknown rule for the death of another job";
  }
  if (relations & 4) in.id();
  if (relations & 8) in.count();
  facts.edits = (relations & 16) != 0;
  if (more & 2) in.count();
  if (more & 4) facts.replaces_body = in.count() != 0;
  if (more & 8) {
    if (Problem problem = check_past(in)) return problem;
  }
  if (flags & 8) in.count();
  if (flags & 16) in.count();
  if (flags & 32) {
    if (Problem problem = check_retry(in)) return problem;
  }
  if (flags & 64) in.string();
  if (flags & 128) skip_headers(in);
  in.string();
  return std::nullopt;
}

void take_leases(Bytes& in, RecordFacts& facts) {
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    facts.ids.push_back(in.id());
    in.count();
  }
}

Problem granted(Bytes& in, std::uint8_t version, RecordFacts& facts) {
  const std::uint8_t flags = in.u8();
  if (flags >= 4) return "unknown flags";
  skip_time(in);
  if (flags & 2) in.string();
  if (version > 1) in.count();
  take_leases(in, facts);
  return std::nullopt;
}

Problem delivered(Bytes& in, std::uint8_t, RecordFacts& facts) {
  take_leases(in, facts);
  return std::nullopt;
}

Problem changed(Bytes& in, std::uint8_t version, RecordFacts& facts) {
  facts.ids = {in.id()};
  facts.cause = in.u8();
  if (facts.cause < 1 || facts.cause > 5) return "an unknown cause";
  const std::uint8_t flags = in.u8();
  if (flags >= (version > 1 ? 64 : 32)) return "unknown flags";
  skip_time(in);
  in.count();
  in.count();
  if (flags & 1) in.count();
  facts.dead = (flags & 4) != 0;
  if (facts.dead && in.u8() > 3) return "an unknown reason of death";
  if (flags & 8) {
    if (Problem problem = check_past(in)) return problem;
  }
  if (flags & 16) in.string();
  if (flags & 32) in.count();
  return std::nullopt;
}

Problem done(Bytes& in, std::uint8_t, RecordFacts& facts) {
  facts.ids = {in.id()};
  const std::uint8_t flags = in.u8();
  if (flags >= 8) return "unknown flags";
  skip_time(in);
  in.count();
  in.count();
  if (flags & 2) in.string();
  if (flags & 1) in.string();
  if (flags & 4) return check_past(in);
  return std::nullopt;
}

Problem removed(Bytes& in, std::uint8_t, RecordFacts& facts) {
  facts.cause = in.u8();
  if (facts.cause < 1 || facts.cause > 4) return "an unknown cause";
  skip_time(in);
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) facts.ids.push_back(in.id());
  return std::nullopt;
}

Problem queue(Bytes& in, std::uint8_t, RecordFacts&) {
  if (in.u8() > 1) return "neither paused nor open";
  in.string();
  return std::nullopt;
}

Problem clock(Bytes& in, std::uint8_t, RecordFacts&) {
  in.u64();
  return std::nullopt;
}

Problem cancel_asked(Bytes& in, std::uint8_t, RecordFacts& facts) {
  facts.ids = {in.id()};
  skip_time(in);
  return std::nullopt;
}

Problem bound(Bytes& in, std::uint8_t, RecordFacts&) {
  skip_binding(in);
  return std::nullopt;
}

Problem rules(Bytes& in, std::uint8_t, RecordFacts&) { return check_rules(in); }

Problem step(Bytes& in, std::uint8_t, RecordFacts& facts) {
  facts.ids = {in.id()};
  in.count();
  in.string();
  in.string();
  return std::nullopt;
}

Problem schedule(Bytes& in, std::uint8_t, RecordFacts&) { return check_schedule(in); }

Problem decisions(Bytes& in, std::uint8_t, RecordFacts&) {
  in.string();
  in.u64();
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    if (Problem problem = check_decision(in)) return problem;
  }
  return std::nullopt;
}

Problem mark(Bytes& in, std::uint8_t, RecordFacts&) {
  in.rest();
  return std::nullopt;
}

Problem moved(Bytes& in, std::uint8_t, RecordFacts& facts) {
  facts.moved_from = in.count();
  in.count();
  const std::uint8_t type = in.u8();
  const std::uint8_t version = in.u8();
  if (type != 2 && type != 4 && type != 5) return "a record that never moves";
  RecordFacts inner;
  if (Problem problem = take_apart(type, version, in.rest(), inner)) return problem;
  facts.ids = inner.ids;
  facts.inner = inner.type;
  return std::nullopt;
}

struct Kind {
  std::string_view name;
  Problem (*take)(Bytes&, std::uint8_t version, RecordFacts&);
  std::uint8_t newest = 1;  // Version.
};

constexpr Kind kNone{"", nullptr, 0};  // Never written.

// By number, from 1.
constexpr std::array kKinds = {Kind{"mark", mark},       Kind{"accepted", accepted, 2}, Kind{"granted", granted, 2},
                               Kind{"changed", changed, 2}, Kind{"done", done, 2},         Kind{"removed", removed},
                               Kind{"queue", queue},     Kind{"clock", clock},       Kind{"moved", moved},
                               Kind{"cancel asked", cancel_asked}, Kind{"delivered", delivered},
                               Kind{"bound", bound},     Kind{"rules", rules},       Kind{"schedule", schedule},
                               Kind{"decisions", decisions}, kNone,                  Kind{"step", step}};

}  // namespace

void skip_binding(Bytes& in) {
  in.string();
  for (int i = 0; i < 3; ++i) in.count();
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) in.string();
}

std::optional<std::string> check_rules(Bytes& in) {
  in.string();
  for (int i = 0; i < 8; ++i) in.count();  // At once and the rate, of the queue and of each group.
  if (in.u8() > 1) return "rules that are neither fair nor not";
  for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
    in.string();
    in.count();
  }
  for (int i = 0; i < 4; ++i) in.count();
  return std::nullopt;
}

std::optional<std::string> check_schedule(Bytes& in) {
  const std::uint8_t flags = in.u8();
  if (flags > 7) return "unknown flags";
  in.string();
  if (flags & 1) return std::nullopt;  // Removed.
  in.string();
  in.count();
  in.u64();
  in.u64();
  in.string();
  in.string();
  in.count();
  if (flags & 4) in.u64();
  if (in.u8() > 2) return "an unknown rule for what was missed";
  in.count();
  if (in.u8() > 2) return "an unknown rule for an overlap";
  in.count();
  if (in.u8() > 2) return "an unknown rule for a conflict";
  const std::uint8_t version = in.u8();
  RecordFacts job;
  if (const std::string_view payload = in.string(); in.ok()) {
    if (auto problem = take_apart(2, version, payload, job)) return "its job: " + *problem;
  }
  return std::nullopt;
}

std::optional<std::string> check_decision(Bytes& in) {
  const std::uint8_t kind = in.u8();
  if (in.ok() && (kind < 1 || kind > 4)) return "a decision of an unknown kind";
  in.u64();
  in.count();
  if (kind == 1 || kind == 4) in.id();
  if (kind == 2) in.string();
  return std::nullopt;
}

std::string_view name_of_type(std::uint8_t type) {
  return type >= 1 && type <= kKinds.size() ? kKinds[type - 1].name : std::string_view();
}

std::optional<std::string> take_apart(std::uint8_t type, std::uint8_t version, std::string_view payload,
                                      RecordFacts& facts) {
  if (name_of_type(type).empty()) return "a record of unknown type " + std::to_string(type);
  if (version < 1 || version > kKinds[type - 1].newest) return "a record of unknown version " + std::to_string(version);
  facts.type = static_cast<RecordType>(type);
  Bytes in(payload);
  const Kind& kind = kKinds[type - 1];
  Problem problem = kind.take(in, version, facts);
  if (!problem && !in.ok()) problem = "it is too short for its fields";
  if (!problem && !in.at_end()) problem = "it is longer than its fields";
  if (problem) return std::string(kind.name) + ": " + *problem;
  return std::nullopt;
}

}  // namespace bide::engine::check
