#include "engine/journal/record_fields.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bide::engine::journal {
namespace {

// Bits of the flags byte of a retry policy.
namespace retry {
constexpr std::uint8_t kShape = 3, kFactor = 4, kJitter = 8, kCap = 16, kAll = 31;
}  // namespace retry

// Fixed and exponential have one wait, written like a single step.
bool has_wait(const RetryPolicy& policy) {
  return policy.shape == RetryPolicy::Shape::kFixed || policy.shape == RetryPolicy::Shape::kExponential;
}

}  // namespace

const Job& default_job() {
  static const Job job;
  return job;
}

void put_time(Encoder& out, std::int64_t time_ms, std::int64_t near_ms) {
  const std::uint64_t difference = static_cast<std::uint64_t>(time_ms) - static_cast<std::uint64_t>(near_ms);
  out.count(difference << 1 ^ (difference >> 63 ? ~std::uint64_t{0} : 0));
}

std::int64_t get_time(Decoder& in, std::int64_t near_ms) {
  const std::uint64_t coded = in.count();
  const std::uint64_t difference = coded >> 1 ^ (coded & 1 ? ~std::uint64_t{0} : 0);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(near_ms) + difference);
}

bool get_u32(Decoder& in, std::uint32_t& out) {
  const std::uint64_t value = in.count();
  out = static_cast<std::uint32_t>(value);
  return value <= 0xffff'ffff;
}

bool is_empty(const Past& past) { return past.counts == AttemptCounts() && past.history.empty() && past.note.empty(); }

void put_past(Encoder& out, const Past& past) {
  out.count(past.counts.failed);
  out.count(past.counts.timed_out);
  out.count(past.counts.lost);
  out.count(past.counts.crashed);
  const std::size_t kept = std::min(past.history.size(), Limits::kHistory);
  out.count(kept);
  for (std::size_t i = past.history.size() - kept; i < past.history.size(); ++i) {
    const AttemptError& error = past.history[i];
    out.count(error.attempt);
    out.i64(to_ms(error.at));
    out.u8(static_cast<std::uint8_t>(error.fault));
    out.string(error.text);
  }
  out.string(past.note);
}

const char* get_counts(Decoder& in, AttemptCounts& out) {
  const bool fit =
      get_u32(in, out.failed) && get_u32(in, out.timed_out) && get_u32(in, out.lost) && get_u32(in, out.crashed);
  return fit ? nullptr : "a count of attempts is out of range";
}

const char* get_past(Decoder& in, Past& out) {
  if (const char* wrong = get_counts(in, out.counts)) return wrong;
  const std::uint64_t kept = in.count();
  if (kept > Limits::kHistory) return "its history is too long";
  out.history.resize(static_cast<std::size_t>(kept));
  for (AttemptError& error : out.history) {
    if (!get_u32(in, error.attempt)) return "the number of an attempt is out of range";
    error.at = to_time(in.i64());
    const std::uint8_t fault = in.u8();
    if (fault > static_cast<std::uint8_t>(Fault::kCrashed)) return "no such fault";
    error.fault = static_cast<Fault>(fault);
    error.text = in.string();
  }
  out.note = in.string();
  return nullptr;
}

void put_retry(Encoder& out, const RetryPolicy& policy) {
  const RetryPolicy& usual = default_job().retry;
  std::uint8_t flags = static_cast<std::uint8_t>(policy.shape);
  if (policy.factor != usual.factor) flags |= retry::kFactor;
  if (policy.jitter != usual.jitter) flags |= retry::kJitter;
  if (policy.cap != usual.cap) flags |= retry::kCap;
  out.u8(flags);
  out.count(policy.max_attempts);
  if (flags & retry::kFactor) out.f64(policy.factor);
  if (flags & retry::kJitter) out.f64(policy.jitter);
  if (flags & retry::kCap) out.count(static_cast<std::uint64_t>(policy.cap.count()));
  if (has_wait(policy)) {
    out.count(1);
    out.count(static_cast<std::uint64_t>(policy.wait.count()));
    return;
  }
  out.count(policy.waits.size());
  for (const Milliseconds wait : policy.waits) out.count(static_cast<std::uint64_t>(wait.count()));
}

void put_binding(Encoder& out, const Binding& binding) {
  out.string(binding.queue);
  out.count(binding.most);
  out.count(static_cast<std::uint64_t>(binding.keep.count()));
  out.count(static_cast<std::uint64_t>(binding.idle.count()));
  out.count(binding.patterns.size());
  for (const std::string& pattern : binding.patterns) out.string(pattern);
}

const char* get_binding(Decoder& in, Binding& out) {
  out = Binding();
  out.queue = in.string();
  out.most = in.count();
  if (!get_duration(in, out.keep) || !get_duration(in, out.idle)) return "a time of its binding is out of range";
  const std::uint64_t patterns = in.count();
  if (patterns > in.left()) return "it has more patterns than bytes";
  out.patterns.resize(static_cast<std::size_t>(patterns));
  for (std::string& pattern : out.patterns) pattern = in.string();
  return nullptr;
}

namespace {

void put_rate(Encoder& out, const RateLimit& rate) {
  out.count(rate.count);
  out.count(static_cast<std::uint64_t>(rate.period.count()));
  out.count(rate.burst);
}

bool get_rate(Decoder& in, RateLimit& out) {
  return get_u32(in, out.count) && get_duration(in, out.period) && get_u32(in, out.burst);
}

}  // namespace

void put_rules(Encoder& out, const QueueRules& rules) {
  out.string(rules.queue);
  out.count(rules.at_once);
  put_rate(out, rules.rate);
  out.count(rules.group_at_once);
  put_rate(out, rules.group_rate);
  out.u8(rules.fair ? 1 : 0);
  out.count(rules.weights.size());
  for (const auto& [group, weight] : rules.weights) {
    out.string(group);
    out.count(static_cast<std::uint64_t>(weight));
  }
  out.count(static_cast<std::uint64_t>(rules.ageing.count()));
  out.count(rules.most_jobs);
  out.count(rules.most_bytes);
  out.count(static_cast<std::uint64_t>(rules.oldest.count()));
}

const char* get_rules(Decoder& in, QueueRules& out) {
  out = QueueRules();
  out.queue = in.string();
  if (!get_u32(in, out.at_once) || !get_rate(in, out.rate) || !get_u32(in, out.group_at_once) ||
      !get_rate(in, out.group_rate)) {
    return "a limit is out of range";
  }
  const std::uint8_t fair = in.u8();
  if (fair > 1) return "it is neither fair nor not";
  out.fair = fair != 0;
  const std::uint64_t weights = in.count();
  if (weights > in.left()) return "it has more weights than bytes";
  out.weights.resize(static_cast<std::size_t>(weights));
  for (auto& [group, weight] : out.weights) {
    group = in.string();
    std::uint32_t turns = 0;
    if (!get_u32(in, turns) || turns > INT32_MAX) return "a weight is out of range";
    weight = static_cast<int>(turns);
  }
  if (!get_duration(in, out.ageing)) return "its ageing is out of range";
  out.most_jobs = in.count();
  out.most_bytes = in.count();
  if (!get_duration(in, out.oldest)) return "the age of its oldest job is out of range";
  return nullptr;
}

bool get_duration(Decoder& in, Milliseconds& out) {
  const std::uint64_t value = in.count();
  out = Milliseconds(static_cast<std::int64_t>(value));
  return value <= static_cast<std::uint64_t>(INT64_MAX);
}

const char* get_retry(Decoder& in, RetryPolicy& out) {
  const std::uint8_t flags = in.u8();
  if (flags & ~retry::kAll) return "its retry policy has a flag that is not known";
  out.shape = static_cast<RetryPolicy::Shape>(flags & retry::kShape);
  if (!get_u32(in, out.max_attempts) || out.max_attempts > RetryPolicy::kMaxAttemptsLimit) {
    return "its number of attempts is out of range";
  }
  if (flags & retry::kFactor) out.factor = in.f64();
  if (flags & retry::kJitter) out.jitter = in.f64();
  if (!std::isfinite(out.factor) || !std::isfinite(out.jitter)) return "its retry policy is not made of numbers";
  if (flags & retry::kCap && !get_duration(in, out.cap)) return "its longest wait is out of range";
  const std::uint64_t waits = in.count();
  if (waits > RetryPolicy::kMaxSteps) return "its retry policy has too many steps";
  if (has_wait(out)) {
    return waits == 1 && get_duration(in, out.wait) ? nullptr : "the wait of its retry policy is not there or out of range";
  }
  out.waits.resize(static_cast<std::size_t>(waits));
  for (Milliseconds& wait : out.waits) {
    if (!get_duration(in, wait)) return "a wait of its retry policy is out of range";
  }
  return nullptr;
}

}  // namespace bide::engine::journal
