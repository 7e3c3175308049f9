#include "metrics/job_history.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/encoding.h"
#include "platform/disk.h"

namespace bide::metrics {
namespace {

// Kept over a restart: this name, then for queues and for kinds the number of series, and for each its name and both rings
// (how many steps; of each its number and its counts), then a checksum of all of it.
constexpr std::string_view kFormat = "bide job history 1\n";
constexpr std::uint64_t kSeed = 17;

std::int64_t number_of(Time time, Milliseconds step) {
  return std::chrono::floor<Milliseconds>(time).time_since_epoch() / step;
}

void save_counts(core::Encoder& out, const HistoryStep& step) {
  for (const std::uint32_t count : step.events) out.count(count);
  for (const std::uint32_t count : step.lateness) out.count(count);
}

bool load_counts(core::Decoder& in, HistoryStep& step) {
  const auto take = [&in](std::uint32_t& count) { count = static_cast<std::uint32_t>(in.count()); };
  std::for_each(step.events.begin(), step.events.end(), take);
  std::for_each(step.lateness.begin(), step.lateness.end(), take);
  return in.ok();
}

}  // namespace

void HistoryStep::add(const HistoryStep& other) {
  for (std::size_t i = 0; i < events.size(); ++i) events[i] += other.events[i];
  for (std::size_t i = 0; i < lateness.size(); ++i) lateness[i] += other.lateness[i];
}

std::optional<double> HistoryStep::lateness_ms(double part) const {
  std::uint64_t all = 0;
  for (const std::uint32_t count : lateness) all += count;
  if (all == 0) return std::nullopt;
  const double wanted = part * static_cast<double>(all);
  double below = 0;
  for (std::size_t i = 0; i < kLatenessBounds.size(); ++i) {
    const double here = lateness[i];
    if (here > 0 && below + here >= wanted) {
      const double from = i == 0 ? 0 : static_cast<double>(kLatenessBounds[i - 1]);
      return from + (static_cast<double>(kLatenessBounds[i]) - from) * (wanted - below) / here;
    }
    below += here;
  }
  return static_cast<double>(kLatenessBounds.back());
}

HistoryStep& JobHistory::Series::Ring::at(std::int64_t number, std::int64_t most) {
  // A clock that was set back counts for the newest step.
  if (steps.empty() || steps.back().number < number) steps.push_back({number, {}});
  while (steps.front().number <= steps.back().number - most) steps.pop_front();
  return steps.back().step;
}

template <class Change>
void JobHistory::Series::change(Time now, Change change) {
  const std::lock_guard lock(mutex_);
  change(fine_.at(number_of(now, kFineStep), kFineSteps));
  change(coarse_.at(number_of(now, kCoarseStep), kCoarseSteps));
}

void JobHistory::Series::add(JobEventKind kind, Time now, std::uint32_t count) {
  change(now, [&](HistoryStep& step) { step.events[static_cast<std::size_t>(kind)] += count; });
}

void JobHistory::Series::started(Time now, Milliseconds late) {
  const auto bound = std::lower_bound(kLatenessBounds.begin(), kLatenessBounds.end(), late.count());
  const auto place = static_cast<std::size_t>(bound - kLatenessBounds.begin());
  change(now, [&](HistoryStep& step) {
    step.events[static_cast<std::size_t>(JobEventKind::kStarted)] += 1;
    step.lateness[place] += 1;
  });
}

JobHistory::Reading JobHistory::empty_reading(const Window& window) {
  const std::int64_t last = number_of(window.until, window.step);
  const std::int64_t first = last + 1 - static_cast<std::int64_t>(window.steps);
  return {Time(window.step * first), std::vector<HistoryStep>(window.steps)};
}

void JobHistory::read_into(const Series& series, const Window& window, Reading& reading) {
  const bool is_fine = window.step * static_cast<std::int64_t>(window.steps) <= kFineStep * kFineSteps;
  const std::int64_t each = window.step / (is_fine ? kFineStep : kCoarseStep);
  const std::int64_t first = number_of(reading.from, window.step);
  const std::lock_guard lock(series.mutex_);
  for (const Series::Numbered& one : (is_fine ? series.fine_ : series.coarse_).steps) {
    const std::int64_t place = one.number / each - first;
    if (place < 0 || place >= static_cast<std::int64_t>(reading.steps.size())) continue;
    reading.steps[static_cast<std::size_t>(place)].add(one.step);
  }
}

JobHistory::Reading JobHistory::read(const Window& window) const {
  Reading reading = empty_reading(window);
  queues_.each([&](std::string_view, const Series& series) { read_into(series, window, reading); });
  return reading;
}

JobHistory::Reading JobHistory::read_named(const All& all, std::string_view name, const Window& window) {
  Reading reading = empty_reading(window);
  all.each([&](std::string_view each, const Series& series) {
    if (each == name) read_into(series, window, reading);
  });
  return reading;
}

JobHistory::Reading JobHistory::read_queue(std::string_view name, const Window& window) const {
  return read_named(queues_, name, window);
}

JobHistory::Reading JobHistory::read_kind(std::string_view name, const Window& window) const {
  return read_named(kinds_, name, window);
}

std::vector<JobHistory::Sum> JobHistory::sums(const All& all, const Window& window) {
  std::vector<Sum> sums;
  const Reading empty = empty_reading(window);
  all.each([&](std::string_view name, const Series& series) {
    Reading reading = empty;
    read_into(series, window, reading);
    Sum sum{std::string(name), {}};
    for (const HistoryStep& step : reading.steps) sum.total.add(step);
    const auto& events = sum.total.events;
    if (std::any_of(events.begin(), events.end(), [](std::uint32_t count) { return count > 0; })) {
      sums.push_back(std::move(sum));
    }
  });
  return sums;
}

std::string JobHistory::save() const {
  std::string text(kFormat);
  core::Encoder out(text);
  for (const All* const all : {&queues_, &kinds_}) {
    std::string series_text;
    core::Encoder series_out(series_text);
    std::uint64_t count = 0;
    all->each([&](std::string_view name, const Series& series) {
      ++count;
      series_out.string(name);
      const std::lock_guard lock(series.mutex_);
      for (const Series::Ring* const ring : {&series.fine_, &series.coarse_}) {
        series_out.count(ring->steps.size());
        for (const Series::Numbered& one : ring->steps) {
          series_out.i64(one.number);
          save_counts(series_out, one.step);
        }
      }
    });
    out.count(count);
    out.raw(series_text);
  }
  out.u64(platform::checksum(text, kSeed));
  return text;
}

Status JobHistory::load(std::string_view saved) {
  const Error corrupt{ErrorCode::kDamaged, "the history of jobs is damaged, or of another version"};
  constexpr std::size_t kSum = sizeof(std::uint64_t);
  if (saved.size() < kFormat.size() + kSum || !saved.starts_with(kFormat)) return corrupt;
  const std::string_view kept = saved.substr(0, saved.size() - kSum);
  if (core::load_little_endian<std::uint64_t>(saved.data() + kept.size()) != platform::checksum(kept, kSeed)) return corrupt;
  core::Decoder in(kept.substr(kFormat.size()));
  for (All* const all : {&queues_, &kinds_}) {
    for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left) {
      Series& series = all->at(in.string());
      const std::lock_guard lock(series.mutex_);
      for (auto [ring, most] : {std::pair(&series.fine_, kFineSteps), std::pair(&series.coarse_, kCoarseSteps)}) {
        for (std::uint64_t steps = in.count(); steps > 0 && in.ok(); --steps) {
          const std::int64_t number = in.i64();
          HistoryStep step;
          if (load_counts(in, step)) ring->at(number, most).add(step);
        }
      }
    }
  }
  return in.ok() ? Status() : corrupt;
}

}  // namespace bide::metrics
