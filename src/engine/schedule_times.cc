#include "engine/schedule_times.h"

namespace bide::engine {

namespace {

constexpr std::int64_t kZoneRetryMs = 60'000;

}  // namespace

void ScheduleTimes::put(const std::string& name, std::int64_t look_ms) {
  const auto found = next_.find(name);
  if (found == next_.end()) return;
  order_.erase({found->second.look_ms, name});
  found->second.look_ms = look_ms;
  order_.emplace(look_ms, name);
}

void ScheduleTimes::set(const KnownSchedule& known, std::int64_t now_ms, bool something_waits) {
  const std::string& name = known.record.schedule.name;
  forget(name);
  Next& next = next_[name];
  if (known.record.paused) {
    next.why_not = "it is paused";
    return;
  }
  auto times = core::DueTimes::of(known.record.schedule, Time(Milliseconds(known.record.put_ms)), zones_);
  if (!times) {
    next.why_not = times.error().message;
    return put(name, now_ms + kZoneRetryMs);
  }
  next.due = times->next(Time(Milliseconds(known.record.decided_ms)));
  next.times = std::move(*times);
  const bool is_wrong = known.record.decided_ms > now_ms + kWrongClockMs;
  put(name, something_waits || is_wrong ? 0 : next.due->time_since_epoch().count());
}

void ScheduleTimes::forget(const std::string& name) {
  const auto found = next_.find(name);
  if (found == next_.end()) return;
  order_.erase({found->second.look_ms, name});
  next_.erase(found);
}

}  // namespace bide::engine
