// Wire: how each thing that the seam speaks of is written into a frame and read back. Every struct names its fields
// once, in Fields; the rest follows from that.
//
// Reading never trusts: a value out of its range makes the decoder fail, counts are held against the bytes that are
// left, and times are kept within what can be reckoned with.

#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "core/encoding.h"
#include "core/enums.h"

namespace bide::brokers::shared {

using core::Decoder;
using core::Encoder;

// ---- What has fields.

template <class T>
struct Fields;

template <>
struct Fields<Error> {
  static auto of(auto& v) { return std::tie(v.code, v.message); }
};
template <>
struct Fields<RetryPolicy> {
  static auto of(auto& v) { return std::tie(v.shape, v.max_attempts, v.factor, v.jitter, v.cap, v.wait, v.waits); }
};
template <>
struct Fields<Job> {
  static auto of(auto& v) {
    return std::tie(v.id, v.kind, v.queue, v.body, v.content_type, v.headers, v.delay, v.due, v.expires, v.time_limit,
                    v.priority, v.retry, v.unique_key, v.unique_for, v.on_conflict, v.group, v.after, v.after_death,
                    v.flow, v.past);
  }
};
template <>
struct Fields<JobPast> {
  static auto of(auto& v) { return std::tie(v.attempts, v.counts, v.history, v.dead, v.finished); }
};
template <>
struct Fields<AttemptCounts> {
  static auto of(auto& v) { return std::tie(v.failed, v.timed_out, v.lost, v.crashed); }
};
template <>
struct Fields<AttemptError> {
  static auto of(auto& v) { return std::tie(v.attempt, v.at, v.fault, v.text); }
};
template <>
struct Fields<Step> {
  static auto of(auto& v) { return std::tie(v.name, v.result); }
};
template <>
struct Fields<Progress> {
  static auto of(auto& v) { return std::tie(v.part, v.note); }
};
template <>
struct Fields<Lease> {
  static auto of(auto& v) { return std::tie(v.job, v.token, v.attempt, v.due, v.counts, v.history, v.steps); }
};
template <>
struct Fields<LeaseRef> {
  static auto of(auto& v) { return std::tie(v.id, v.token); }
};
template <>
struct Fields<Done> {
  static auto of(auto& v) { return std::tie(v.result, v.content_type); }
};
template <>
struct Fields<RetryAt> {
  static auto of(auto& v) { return std::tie(v.after, v.fault, v.error, v.body); }
};
template <>
struct Fields<Dead> {
  static auto of(auto& v) { return std::tie(v.reason, v.fault, v.error); }
};
template <>
struct Fields<Returned> {
  static auto of(auto& v) { return std::tie(v.after, v.note); }
};
template <>
struct Fields<Settlement> {
  static auto of(auto& v) { return std::tie(v.lease, v.outcome, v.effects); }
};
template <>
struct Fields<Enqueued> {
  static auto of(auto& v) { return std::tie(v.id, v.existed, v.replaced); }
};
template <>
struct Fields<Published> {
  static auto of(auto& v) { return std::tie(v.id, v.groups, v.full); }
};
template <>
struct Fields<Binding> {
  static auto of(auto& v) { return std::tie(v.queue, v.patterns, v.most, v.keep, v.idle); }
};
template <>
struct Fields<RateLimit> {
  static auto of(auto& v) { return std::tie(v.count, v.period, v.burst); }
};
template <>
struct Fields<QueueRules> {
  static auto of(auto& v) {
    return std::tie(v.queue, v.at_once, v.rate, v.group_at_once, v.group_rate, v.fair, v.weights, v.ageing, v.most_jobs,
                    v.most_bytes, v.oldest);
  }
};
template <>
struct Fields<Schedule> {
  static auto of(auto& v) {
    return std::tie(v.name, v.owner, v.cron, v.zone, v.every, v.anchor, v.job, v.missed, v.most_missed, v.overlap, v.jitter);
  }
};
template <>
struct Fields<PutSchedule> {
  static auto of(auto& v) { return std::tie(v.created, v.changed, v.next); }
};
template <>
struct Fields<Occurrence> {
  static auto of(auto& v) { return std::tie(v.due, v.job, v.note, v.state); }
};
template <>
struct Fields<ScheduleInfo> {
  static auto of(auto& v) { return std::tie(v.schedule, v.version, v.paused, v.next, v.last); }
};
template <>
struct Fields<Extended> {
  static auto of(auto& v) { return std::tie(v.lost, v.cancel_requested); }
};
template <>
struct Fields<Pressure> {
  static auto of(auto& v) { return std::tie(v.level, v.reason, v.retry_after, v.cause); }
};
template <>
struct Fields<Capabilities> {
  static auto of(auto& v) {
    return std::tie(v.inspect, v.cancel, v.reschedule, v.unique_keys, v.idempotent_ids, v.priorities, v.pause,
                    v.results, v.expiry, v.dead_set, v.atomic_effects, v.final_settle, v.audit, v.hasten, v.due_order,
                    v.lasting_leases, v.carries_past, v.save_body, v.virtual_time, v.completions, v.events,
                    v.group_limits, v.requests, v.edit, v.schedules, v.queue_rules, v.kinds, v.unique_windows, v.dependencies,
                    v.progress, v.steps, v.why_not);
  }
};
template <>
struct Fields<QueueShare> {
  static auto of(auto& v) { return std::tie(v.name, v.weight); }
};
template <>
struct Fields<SubscribeOptions> {
  static auto of(auto& v) {
    return std::tie(v.queues, v.kinds, v.credit, v.handlers, v.lease, v.worker, v.outlives_process);
  }
};
template <>
struct Fields<JobInfo> {
  static auto of(auto& v) {
    return std::tie(v.job, v.state, v.due, v.attempts, v.counts, v.history, v.worker, v.progress, v.steps, v.waits_for,
                    v.finished, v.dead_reason, v.note, v.result, v.result_content_type, v.whole);
  }
};
template <>
struct Fields<QueueInfo> {
  static auto of(auto& v) {
    return std::tie(v.name, v.paused, v.scheduled, v.ready, v.waiting, v.running, v.dead, v.done, v.oldest_ready, v.workers);
  }
};
template <>
struct Fields<JobFilter> {
  static auto of(auto& v) {
    return std::tie(v.states, v.queue, v.kind, v.group, v.flow, v.headers, v.error, v.since, v.until, v.bodies);
  }
};
template <>
struct Fields<JobPage> {
  static auto of(auto& v) { return std::tie(v.jobs, v.next); }
};
template <>
struct Fields<CancelOptions> {
  static auto of(auto& v) { return std::tie(v.state); }
};
template <>
struct Fields<JobEdit> {
  static auto of(auto& v) {
    return std::tie(v.body, v.content_type, v.headers, v.queue, v.priority, v.retry, v.time_limit, v.due);
  }
};
template <>
struct Fields<ReplayOptions> {
  static auto of(auto& v) { return std::tie(v.keep_attempts, v.delay); }
};
template <>
struct Fields<Explanation> {
  static auto of(auto& v) { return std::tie(v.code, v.text); }
};
template <>
struct Fields<BackupInfo> {
  static auto of(auto& v) {
    return std::tie(v.state, v.target, v.files, v.bytes, v.copied_bytes, v.linked_bytes, v.checked_bytes, v.live_jobs,
                    v.started, v.finished, v.error, v.error_code);
  }
};
template <>
struct Fields<AuditReport> {
  static auto of(auto& v) { return std::tie(v.accepted, v.done, v.removed, v.live, v.details, v.problems); }
};

// ---- Reading and writing.

// Beyond twice the longest delay a span is no more valid than at it, and sums with it cannot overflow.
inline constexpr std::int64_t kLongestSpanMs = 2 * std::chrono::milliseconds(Limits::kDelay).count();
inline constexpr std::int64_t kFarthestTimeMs = std::int64_t{1} << 52;

template <class T>
struct Wire {
  static void put(Encoder& out, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      out.u8(static_cast<std::uint8_t>(value));
    } else {
      std::apply([&](const auto&... field) { (Wire<std::remove_cvref_t<decltype(field)>>::put(out, field), ...); },
                 Fields<T>::of(value));
    }
  }
  static T take(Decoder& in) {
    T value{};
    if constexpr (std::is_enum_v<T>) {
      const std::uint8_t number = in.u8();
      if (number > static_cast<std::uint8_t>(core::kLast<T>)) in.fail();
      if (in.ok()) value = static_cast<T>(number);
    } else {
      std::apply([&](auto&... field) { ((field = Wire<std::remove_cvref_t<decltype(field)>>::take(in)), ...); },
                 Fields<T>::of(value));
    }
    return value;
  }
};

template <>
struct Wire<bool> {
  static void put(Encoder& out, bool value) { out.u8(value ? 1 : 0); }
  static bool take(Decoder& in) {
    const std::uint8_t value = in.u8();
    if (value > 1) in.fail();
    return value == 1;
  }
};
template <>
struct Wire<std::uint32_t> {
  static void put(Encoder& out, std::uint32_t value) { out.count(value); }
  static std::uint32_t take(Decoder& in) {
    const std::uint64_t value = in.count();
    if (value > std::numeric_limits<std::uint32_t>::max()) in.fail();
    return static_cast<std::uint32_t>(value);
  }
};
template <>
struct Wire<std::uint64_t> {
  static void put(Encoder& out, std::uint64_t value) { out.count(value); }
  static std::uint64_t take(Decoder& in) { return in.count(); }
};
template <>
struct Wire<int> {
  static void put(Encoder& out, int value) { out.u32(static_cast<std::uint32_t>(value)); }
  static int take(Decoder& in) { return static_cast<int>(in.u32()); }
};
template <>
struct Wire<double> {
  static void put(Encoder& out, double value) { out.f64(value); }
  static double take(Decoder& in) { return in.f64(); }
};
template <>
struct Wire<std::string> {
  static void put(Encoder& out, const std::string& value) { out.string(value); }
  static std::string take(Decoder& in) { return std::string(in.string()); }
};
template <>
struct Wire<JobId> {
  static void put(Encoder& out, const JobId& value) { out.id(value); }
  static JobId take(Decoder& in) { return in.id(); }
};
template <>
struct Wire<Milliseconds> {
  static void put(Encoder& out, Milliseconds value) { out.i64(value.count()); }
  static Milliseconds take(Decoder& in) { return Milliseconds(std::clamp(in.i64(), -kLongestSpanMs, kLongestSpanMs)); }
};
template <>
struct Wire<Time> {
  static void put(Encoder& out, Time value) { out.i64(value.time_since_epoch().count()); }
  static Time take(Decoder& in) { return Time(Milliseconds(std::clamp(in.i64(), -kFarthestTimeMs, kFarthestTimeMs))); }
};

template <class A, class B>
struct Wire<std::pair<A, B>> {
  static void put(Encoder& out, const std::pair<A, B>& value) {
    Wire<A>::put(out, value.first);
    Wire<B>::put(out, value.second);
  }
  static std::pair<A, B> take(Decoder& in) {
    A first = Wire<A>::take(in);
    return {std::move(first), Wire<B>::take(in)};
  }
};

template <class T>
struct Wire<std::vector<T>> {
  static void put(Encoder& out, const std::vector<T>& values) {
    out.count(values.size());
    for (const T& value : values) Wire<T>::put(out, value);
  }
  static std::vector<T> take(Decoder& in) {
    std::vector<T> values;
    const std::uint64_t count = in.count();
    // Each takes a byte at least. Room is made as they come, since a claim costs nothing.
    if (count > in.left()) in.fail();
    if (in.ok()) values.reserve(std::min<std::uint64_t>(count, 1024));
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) values.push_back(Wire<T>::take(in));
    return values;
  }
};

template <>
struct Wire<std::map<std::string, std::uint64_t>> {
  using Entries = std::vector<std::pair<std::string, std::uint64_t>>;
  static void put(Encoder& out, const std::map<std::string, std::uint64_t>& value) {
    Wire<Entries>::put(out, Entries(value.begin(), value.end()));
  }
  static std::map<std::string, std::uint64_t> take(Decoder& in) {
    const Entries entries = Wire<Entries>::take(in);
    return {entries.begin(), entries.end()};
  }
};

template <class T>
struct Wire<std::optional<T>> {
  static void put(Encoder& out, const std::optional<T>& value) {
    Wire<bool>::put(out, value.has_value());
    if (value) Wire<T>::put(out, *value);
  }
  static std::optional<T> take(Decoder& in) {
    if (!Wire<bool>::take(in)) return std::nullopt;
    return Wire<T>::take(in);
  }
};

template <class T>
struct Wire<std::shared_ptr<const T>> {
  static void put(Encoder& out, const std::shared_ptr<const T>& value) {
    Wire<bool>::put(out, value != nullptr);
    if (value) Wire<T>::put(out, *value);
  }
  static std::shared_ptr<const T> take(Decoder& in) {
    if (!Wire<bool>::take(in)) return nullptr;
    return std::make_shared<const T>(Wire<T>::take(in));
  }
};

template <>
struct Wire<Outcome> {
  static void put(Encoder& out, const Outcome& value) {
    out.u8(static_cast<std::uint8_t>(value.index()));
    std::visit([&](const auto& each) { Wire<std::remove_cvref_t<decltype(each)>>::put(out, each); }, value);
  }
  static Outcome take(Decoder& in) {
    switch (in.u8()) {
      case 0:
        return Wire<Done>::take(in);
      case 1:
        return Wire<RetryAt>::take(in);
      case 2:
        return Wire<Dead>::take(in);
      case 3:
        return Wire<Returned>::take(in);
      default:
        in.fail();
        return Done{};
    }
  }
};

template <class T>
struct Wire<Result<T>> {
  static void put(Encoder& out, const Result<T>& value) {
    Wire<bool>::put(out, value.has_value());
    if (!value) {
      Wire<Error>::put(out, value.error());
    } else if constexpr (!std::is_void_v<T>) {
      Wire<T>::put(out, *value);
    }
  }
  static Result<T> take(Decoder& in) {
    if (!Wire<bool>::take(in)) return Wire<Error>::take(in);
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return Wire<T>::take(in);
    }
  }
};

template <class... T>
void put(Encoder& out, const T&... values) {
  (Wire<T>::put(out, values), ...);
}
template <class T>
T take(Decoder& in) {
  return Wire<T>::take(in);
}

}  // namespace bide::brokers::shared
