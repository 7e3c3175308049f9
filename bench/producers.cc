#include "bench/producers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bare_log.h"
#include "bench/resources.h"
#include "bide/wait.h"

namespace bide::bench {

namespace {

// Calls under way, and the first error among their answers.
class Window {
 public:
  explicit Window(int size) : free_(size), size_(size) {}

  void enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_ > 0; });
    --free_;
  }
  void leave(std::optional<Error> error) {
    std::lock_guard lock(mutex_);
    ++free_;
    if (error && !error_) error_ = std::move(error);
    changed_.notify_all();
  }
  Status drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_ == size_; });
    if (error_) return *error_;
    return {};
  }
  bool failed() {
    std::lock_guard lock(mutex_);
    return error_.has_value();
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  int free_;
  const int size_;
  std::optional<Error> error_;
};

std::optional<Error> first_error(const Result<std::vector<Result<Enqueued>>>& answer) {
  if (!answer) return answer.error();
  for (const auto& each : *answer) {
    if (!each) return each.error();
  }
  return std::nullopt;
}

Status produce_range(Broker& broker, const ProducerOptions& options, std::uint64_t from, std::uint64_t to,
                     const std::function<Job(std::uint64_t)>& make) {
  Window window(options.window);
  while (from < to && !window.failed()) {
    std::vector<Job> jobs;
    const std::uint64_t end = std::min<std::uint64_t>(to, from + options.batch);
    jobs.reserve(end - from);
    for (; from < end; ++from) jobs.push_back(make(from));
    window.enter();
    broker.enqueue(std::move(jobs), [&window](const Result<std::vector<Result<Enqueued>>>& answer) {
      window.leave(first_error(answer));
    });
  }
  return window.drain();
}

// Scrambles the number of the job (SplitMix64), so that due times come in no order and yet the same in every run.
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::chrono::milliseconds kSoonest = std::chrono::hours(1);
constexpr std::chrono::milliseconds kSpread = std::chrono::hours(24);

}  // namespace

Status produce(Broker& broker, const ProducerOptions& options, const std::function<Job(std::uint64_t)>& make) {
  const auto threads = static_cast<std::uint64_t>(options.threads);
  std::vector<Status> results(threads);
  std::vector<std::thread> running;
  for (std::uint64_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      results[i] =
          produce_range(broker, options, options.jobs * i / threads, options.jobs * (i + 1) / threads, make);
    });
  }
  for (std::thread& thread : running) thread.join();
  for (Status& result : results) {
    if (!result) return result;
  }
  return {};
}

Job make_bench_job(std::uint64_t number, const char* queue) {
  Job job;
  job.kind = "bench";
  job.queue = queue;
  job.body.assign(kBodyBytes, 'b');
  for (std::size_t i = 0; i < 16; ++i) job.body[i] = static_cast<char>('a' + ((number >> (4 * i)) & 15));
  return job;
}

Result<double> single_enqueue_us(Broker& broker, std::uint64_t number) {
  std::vector<Job> jobs;
  jobs.push_back(make_bench_job(number, "alone"));
  const Stopwatch watch;
  const auto answer =
      wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue(std::move(jobs), std::move(done)); });
  const double took = watch.microseconds();
  if (const auto error = first_error(answer)) return *error;
  return took;
}

Status load_delayed(Broker& broker, std::uint64_t jobs) {
  return produce(broker, {.jobs = jobs, .threads = 2, .batch = kBatch, .window = 2}, [](std::uint64_t number) {
    Job job = make_bench_job(number, "later");
    const auto spread = static_cast<std::uint64_t>(kSpread.count());
    job.delay = kSoonest + Milliseconds(static_cast<std::int64_t>(scrambled(number) % spread));
    return job;
  });
}

}  // namespace bide::bench
