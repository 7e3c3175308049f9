// redis_lateness_run: how late delayed jobs are on a Redis of its own (appendfsync always): from due time to the sink, by the
// clock that both have in common. Beside it, what the machine adds by itself in the same seconds: how late a thread wakes that
// sleeps for a millisecond, and how long the server takes for a bare SET.
//
//   redis_lateness_run [--jobs N] [--seconds N]

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "brokers/redis/connection.h"
#include "support/redis_server.h"
#include "support/seeded_random.h"

namespace bide::redis_test {
namespace {

using std::chrono::system_clock;

struct LatenessOptions {
  int jobs = 20'000;
  int seconds = 20;
};

// In the sink: what arrives is due since when, and is settled at once.
struct Arrivals {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<double> late_ms;
};

double quantile(std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

void print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::printf("%-34s p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, most %.2f ms\n", what, quantile(values, 0.5),
              quantile(values, 0.9), quantile(values, 0.99), quantile(values, 0.999), values.empty() ? 0 : values.back());
}

// Runs one thing again and again until it ends, and remembers how long each took.
class Beside {
 public:
  explicit Beside(std::function<void()> what) : thread_([this, what = std::move(what)] {
    while (!over_) {
      const auto start = std::chrono::steady_clock::now();
      what();
      times_.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
  }) {}
  std::vector<double> end() {
    over_ = true;
    thread_.join();
    return times_;
  }

 private:
  std::atomic<bool> over_ = false;
  std::vector<double> times_;
  std::thread thread_;
};

int measure(const LatenessOptions& options) {
  support::RedisServer server;
  auto opened = brokers::open_broker(server.url());
  if (!opened) {
    std::printf("%s\n", opened.error().message.c_str());
    return 2;
  }
  Broker& broker = *opened->broker;
  Arrivals arrivals;
  auto subscription = broker.subscribe({.credit = 1000}, [&](std::vector<Lease> leases) {
    const auto now = system_clock::now();
    std::vector<Settlement> settlements;
    {
      const std::lock_guard lock(arrivals.mutex);
      for (const Lease& lease : leases) {
        arrivals.late_ms.push_back(std::chrono::duration<double, std::milli>(now - lease.due).count());
        settlements.push_back({.lease = {lease.job.id, lease.token}});
      }
      arrivals.changed.notify_all();
    }
    broker.settle(std::move(settlements), [](const Result<std::vector<Status>>&) {});
  });
  support::SeededRandom random(1);
  constexpr int kBatch = 500;
  for (int sent = 0; sent < options.jobs; sent += kBatch) {
    std::vector<Job> jobs;
    for (int i = 0; i < std::min(kBatch, options.jobs - sent); ++i) {
      Job job;
      job.kind = "late";
      job.body = std::string(200, 'x');
      job.delay = Milliseconds(static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(options.seconds) * 1000)));
      jobs.push_back(std::move(job));
    }
    const auto results = wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue(std::move(jobs), std::move(done)); });
    if (!results) {
      std::printf("%s\n", results.error().message.c_str());
      return 2;
    }
  }
  auto connection = brokers::redis::Connection::open({"127.0.0.1", server.port()}, {}, std::chrono::seconds(10));
  if (!connection) return 2;
  Beside sleeping([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  Beside setting([&] { (void)(*connection)->run({"SET", "bare", "x"}); });
  std::unique_lock lock(arrivals.mutex);
  const bool all = arrivals.changed.wait_for(lock, std::chrono::seconds(options.seconds + 60), [&] {
    return arrivals.late_ms.size() >= static_cast<std::size_t>(options.jobs);
  });
  std::vector<double> late = arrivals.late_ms;
  lock.unlock();
  subscription->reset();
  std::sort(late.begin(), late.end());
  std::printf("%zu of %d jobs, the earliest %.2f ms after it was due\n", late.size(), options.jobs, late.empty() ? 0 : late.front());
  print("jobs: from due to the sink", late);
  print("a sleep of 1 ms, in the same time", sleeping.end());
  print("a bare SET, in the same time", setting.end());
  return all && !late.empty() && late.front() >= 0 ? 0 : 1;
}

int main_program(int count, char** arguments) {
  LatenessOptions options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    if (name == "--jobs") options.jobs = std::atoi(arguments[i + 1]);
    if (name == "--seconds") options.seconds = std::atoi(arguments[i + 1]);
  }
  return measure(options);
}

}  // namespace
}  // namespace bide::redis_test

int main(int count, char** arguments) { return bide::redis_test::main_program(count, arguments); }
