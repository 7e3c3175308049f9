#include "bench/due_load.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "bench/producers.h"
#include "bench/settlers.h"

namespace bide::bench {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};
constexpr int kCredit = 4096;

// The number that make_bench_job() has written into the body.
std::uint64_t number_of(std::string_view body) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 16 && i < body.size(); ++i) {
    number |= static_cast<std::uint64_t>(body[i] - 'a') << (4 * i);
  }
  return number;
}

class Arrivals {
 public:
  Arrivals(std::size_t jobs, std::size_t first_counted)
      : due_(jobs), seen_(jobs, false), first_counted_(first_counted) {}

  void expect(std::uint64_t number, steady_clock::time_point due) {
    std::lock_guard lock(mutex_);
    due_[number] = due;
  }
  void note(const std::vector<Lease>& leases) {
    const auto now = steady_clock::now();
    std::lock_guard lock(mutex_);
    for (const Lease& lease : leases) {
      const std::uint64_t number = number_of(lease.job.body);
      if (number >= seen_.size() || seen_[number]) continue;
      seen_[number] = true;
      ++arrived_;
      const double late = std::chrono::duration<double, std::milli>(now - due_[number]).count();
      if (late < 0) ++load_.early;
      if (number >= first_counted_) load_.late_ms.push_back(late);
    }
    changed_.notify_all();
  }
  void fail(const Error& error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    changed_.notify_all();
  }
  bool failed() {
    std::lock_guard lock(mutex_);
    return error_.has_value();
  }
  Result<DueLoad> wait(steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return error_ || arrived_ == seen_.size(); });
    if (error_) return *error_;
    if (arrived_ == seen_.size()) return std::move(load_);
    return Error{ErrorCode::kUnavailable, std::to_string(seen_.size() - arrived_) + " of " +
                                              std::to_string(seen_.size()) + " jobs did not arrive"};
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::vector<steady_clock::time_point> due_;
  std::vector<bool> seen_;
  const std::size_t first_counted_;
  std::size_t arrived_ = 0;
  DueLoad load_;
  std::optional<Error> error_;
};

}  // namespace

Result<DueLoad> measure_due_load(Broker& broker, const char* queue, const DueLoadOptions& options) {
  const auto warm_up = static_cast<std::size_t>(options.warm_up_seconds * options.per_second);
  const std::size_t jobs = warm_up + static_cast<std::size_t>(options.seconds * options.per_second);
  // Shared with completions that may come after we have given up.
  const auto arrivals = std::make_shared<Arrivals>(jobs, warm_up);
  Settlers settlers(broker, queue, 1, kCredit, [&](const std::vector<Lease>& leases) { arrivals->note(leases); });
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> delays(0, options.longest_delay.count());
  const auto start = steady_clock::now();
  for (std::size_t number = 0; number < jobs && !arrivals->failed(); ++number) {
    std::this_thread::sleep_until(
        start + std::chrono::microseconds(number * 1'000'000 / static_cast<std::size_t>(options.per_second)));
    std::vector<Job> one;
    one.push_back(make_bench_job(number, queue));
    one.back().delay = Milliseconds(delays(random));
    arrivals->expect(number, steady_clock::now() + one.back().delay);
    broker.enqueue(std::move(one), [arrivals](const Result<std::vector<Result<Enqueued>>>& answer) {
      if (!answer) return arrivals->fail(answer.error());
      if (!answer->front()) arrivals->fail(answer->front().error());
    });
  }
  return arrivals->wait(steady_clock::now() + options.longest_delay + kPatience);
}

}  // namespace bide::bench
