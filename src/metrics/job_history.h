// JobHistory: what became of jobs over time, for each queue, for each kind, and together: how many were enqueued, started,
// done, failed and dead, and how late they started. Steps of 10 s for an hour, of 5 minutes for a week.
//
// Memory is bounded: only steps in which something happened are kept, and names beyond kMostNames share one series (see
// Labelled). Safe to use from any thread.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "metrics/labelled.h"

namespace bide::metrics {

enum class JobEventKind : std::uint8_t { kEnqueued, kStarted, kDone, kFailed, kDead };
inline constexpr std::size_t kJobEventKinds = 5;

// Upper bounds of how late jobs start, in milliseconds; one more count is of those beyond.
inline constexpr auto kLatenessBounds = std::to_array<std::int64_t>(
    {1, 2, 5, 10, 20, 50, 100, 200, 500, 1'000, 2'000, 5'000, 10'000, 30'000, 60'000, 300'000, 1'800'000, 3'600'000});

struct HistoryStep {
  std::array<std::uint32_t, kJobEventKinds> events = {};                // By JobEventKind.
  std::array<std::uint32_t, kLatenessBounds.size() + 1> lateness = {};  // Jobs that were so late.

  void add(const HistoryStep& other);
  std::uint32_t count(JobEventKind kind) const { return events[static_cast<std::size_t>(kind)]; }
  // How late the given part of jobs was at most, by the bounds above; nothing when none started. 0 < part <= 1.
  std::optional<double> lateness_ms(double part) const;
};

class JobHistory {
 public:
  static constexpr std::size_t kMostNames = 50;  // Queues, and kinds.
  static constexpr Milliseconds kFineStep{10'000};
  static constexpr Milliseconds kCoarseStep{300'000};
  static constexpr std::int64_t kFineSteps = 360;
  static constexpr std::int64_t kCoarseSteps = 7 * 24 * 12;

  class Series {
   public:
    void add(JobEventKind kind, Time now, std::uint32_t count = 1);
    void started(Time now, Milliseconds late);

   private:
    friend class JobHistory;
    struct Numbered {
      std::int64_t number = 0;  // Of the step, since the epoch.
      HistoryStep step = {};
    };
    struct Ring {
      std::deque<Numbered> steps;  // Rising; without those in which nothing happened.
      HistoryStep& at(std::int64_t number, std::int64_t most);
    };
    template <class Change>
    void change(Time now, Change change);

    mutable std::mutex mutex_;  // Guards everything below.
    Ring fine_;
    Ring coarse_;
  };

  // What they return stays where it is.
  Series& queue(std::string_view name) { return queues_.at(name); }
  Series& kind(std::string_view name) { return kinds_.at(name); }

  struct Window {
    Milliseconds step{0};  // A multiple of kFineStep up to an hour, of kCoarseStep beyond.
    std::size_t steps = 0;
    Time until = {};       // The last step is the one that this time is in.
  };
  struct Reading {
    Time from = {};  // Where the first step begins.
    std::vector<HistoryStep> steps = {};
  };
  struct Sum {
    std::string name = {};
    HistoryStep total = {};
  };
  // Of all queues, of one queue, or of one kind; zeros where the name is unknown.
  Reading read(const Window& window) const;
  Reading read_queue(std::string_view name, const Window& window) const;
  Reading read_kind(std::string_view name, const Window& window) const;
  // Each queue, and each kind, in which something happened.
  std::vector<Sum> queues(const Window& window) const { return sums(queues_, window); }
  std::vector<Sum> kinds(const Window& window) const { return sums(kinds_, window); }

  // To be kept over a restart. A text that cannot be read changes nothing: kDamaged.
  std::string save() const;
  Status load(std::string_view saved);

 private:
  using All = Labelled<Series>;
  static void read_into(const Series& series, const Window& window, Reading& reading);
  static std::vector<Sum> sums(const All& all, const Window& window);
  static Reading empty_reading(const Window& window);
  static Reading read_named(const All& all, std::string_view name, const Window& window);

  All queues_{kMostNames};
  All kinds_{kMostNames};
};

}  // namespace bide::metrics
