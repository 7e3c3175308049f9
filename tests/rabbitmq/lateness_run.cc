// rabbitmq_lateness_run: how late delayed jobs are on a server of its own, and why: by the number of hops, with the
// server's CPU time for a job, and how many of the late ones fall into moments in which the machine stood still for
// everybody (a thread that sleeps 2 ms was woken late, or a small fdatasync took long).
//
//   rabbitmq_lateness_run [--nodes N] [--options radix=64&...] [--per-second N] [--seconds N]

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "support/rabbitmq_server.h"
#include "support/seeded_random.h"
#include "support/temporary_directory.h"

namespace bide::rabbitmq_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kWarmUp = 15s;
constexpr Milliseconds kLongest{10'000};
constexpr double kLateMs = 25;
constexpr auto kMoment = 50ms;

struct Options {
  int nodes = 1;
  std::string url_options = {};
  int per_second = 500;
  int seconds = 20;
};

double ms(steady_clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(fraction * static_cast<double>(values.size())))];
}

// Moments in which something that should take no time took some.
class Watch {
 public:
  Watch() {
    threads_.emplace_back([this] {
      while (!over_) {
        const auto start = steady_clock::now();
        std::this_thread::sleep_for(2ms);
        if (ms(steady_clock::now() - start) > 12) note(stalls_, start);
      }
    });
    threads_.emplace_back([this] {
      const int file = ::open((directory_.path() + "/sync").c_str(), O_WRONLY | O_CREAT, 0600);
      const std::array<char, 4096> page{};
      while (!over_) {
        const auto start = steady_clock::now();
        if (::pwrite(file, page.data(), page.size(), 0) < 0 || ::fdatasync(file) != 0) break;
        if (ms(steady_clock::now() - start) > 15) note(syncs_, start);
        std::this_thread::sleep_for(5ms);
      }
      ::close(file);
    });
  }
  void end() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  static long moment_of(steady_clock::time_point time) { return static_cast<long>(time.time_since_epoch() / kMoment); }
  bool stood_still(long moment) const { return stalls_.contains(moment) || stalls_.contains(moment - 1); }
  bool wrote_slowly(long moment) const { return syncs_.contains(moment) || syncs_.contains(moment - 1); }

 private:
  void note(std::set<long>& moments, steady_clock::time_point start) {
    const std::lock_guard lock(mutex_);
    for (long each = moment_of(start); each <= moment_of(steady_clock::now()); ++each) moments.insert(each);
  }

  const support::TemporaryDirectory directory_;
  std::atomic<bool> over_{false};
  std::mutex mutex_;  // Guards both.
  std::set<long> stalls_;
  std::set<long> syncs_;
  std::vector<std::thread> threads_;
};

// Of all nodes.
double cpu_seconds(const support::RabbitmqServer& server) {
  double sum = 0;
  for (int node = 0; node < server.size(); ++node) {
    std::ifstream file("/proc/" + std::to_string(server.process(node)) + "/stat");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string field;
    for (int i = 3; i <= 15 && fields >> field; ++i) {
      if (i >= 14) sum += std::atof(field.c_str()) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }
  }
  return sum;
}

struct Sample {
  steady_clock::time_point due;
  double late_ms = 0;
  std::size_t hops = 0;
};

int run(const Options& options) {
  support::RabbitmqServer server(options.nodes);
  std::string place = "//guest:guest@";
  for (int node = 0; node < options.nodes; ++node) {
    place += (node > 0 ? "," : "") + ("127.0.0.1:" + std::to_string(server.port(node)));
  }
  place += "?" + options.url_options;
  const auto shape = brokers::rabbitmq::parse_amqp_url(place, false).value().delay;
  brokers::OpenedBroker opened = brokers::open_broker("amqp:" + place).value();

  std::mutex mutex;
  std::vector<Sample> samples;
  std::map<JobId, Sample> expected;
  std::atomic<std::size_t> missing{0};
  auto subscription = opened.broker->subscribe({.credit = 4096}, [&](const std::vector<Lease>& leases) {
    const auto now = steady_clock::now();
    std::vector<Settlement> settlements;
    const std::lock_guard lock(mutex);
    for (const Lease& lease : leases) {
      settlements.push_back({.lease = {lease.job.id, lease.token}, .outcome = Done{}});
      const auto found = expected.find(lease.job.id);
      if (found == expected.end()) continue;
      found->second.late_ms = ms(now - found->second.due);
      if (lease.job.kind == "counted") samples.push_back(found->second);
      expected.erase(found);
      --missing;
    }
    opened.broker->settle(std::move(settlements), [](const auto&) {});
  });
  support::SeededRandom random(1);
  std::uint64_t number = 0;
  const auto produce = [&](const char* kind, std::chrono::seconds time) {
    const auto begin = steady_clock::now();
    for (std::int64_t i = 0; i < time.count() * options.per_second; ++i) {
      std::this_thread::sleep_until(begin + std::chrono::microseconds(i * 1'000'000 / options.per_second));
      Job job;
      job.kind = kind;
      std::array<std::uint8_t, JobId::kSize> bytes{1, 2, 3, 4, 5, 6, 0x70, 7, 0x80};
      ++number;
      for (unsigned at = 0; at < 5; ++at) bytes[11 + at] = static_cast<std::uint8_t>(number >> (32 - 8 * at));
      job.id = JobId(bytes);
      job.delay = Milliseconds(static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(kLongest.count()))));
      {
        const std::lock_guard lock(mutex);
        expected[job.id] = {steady_clock::now() + job.delay, 0, delay_path(shape, before_worker(shape, job.delay)).hops.size()};
        ++missing;
      }
      opened.broker->enqueue({job}, [](const auto&) {});
    }
  };
  const auto await_all = [&] {
    const auto deadline = steady_clock::now() + 3min;
    while (missing > 0 && steady_clock::now() < deadline) std::this_thread::sleep_for(10ms);
  };
  produce("first", kWarmUp);
  await_all();
  Watch watch;
  const double before = cpu_seconds(server);
  const auto start = steady_clock::now();
  produce("counted", std::chrono::seconds(options.seconds));
  await_all();
  const double cpu = cpu_seconds(server) - before;
  const double wall = ms(steady_clock::now() - start) / 1000;
  watch.end();
  subscription->reset();

  const std::lock_guard lock(mutex);
  std::map<std::size_t, std::vector<double>> by_hops;
  std::vector<double> all;
  int late = 0, still = 0, slow = 0, early = 0;
  double hops = 0;
  for (const Sample& sample : samples) {
    all.push_back(sample.late_ms);
    by_hops[sample.hops].push_back(sample.late_ms);
    hops += static_cast<double>(sample.hops);
    early += sample.late_ms < 0 ? 1 : 0;
    if (sample.late_ms <= kLateMs) continue;
    ++late;
    bool stood = false, wrote = false;
    // From when it should have moved to when it came.
    const auto from = Watch::moment_of(sample.due - 20ms);
    for (long moment = from; moment <= Watch::moment_of(sample.due + std::chrono::milliseconds(static_cast<long>(sample.late_ms))); ++moment) {
      stood = stood || watch.stood_still(moment);
      wrote = wrote || watch.wrote_slowly(moment);
    }
    still += stood ? 1 : 0;
    slow += wrote && !stood ? 1 : 0;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, samples.size()));
  std::printf("%d nodes, %s, %d a second: %zu jobs, %zu missing, %d early\n", options.nodes, options.url_options.c_str(),
              options.per_second, samples.size(), missing.load(), early);
  std::printf("late p50 %.1f ms, p99 %.1f ms, max %.1f ms; %.2f hops a job; %.2f ms of the server's CPU a job, %.2f cores\n",
              quantile(all, 0.5), quantile(all, 0.99), quantile(all, 1), hops / count, 1000 * cpu / count, cpu / wall);
  for (const auto& [number_of_hops, values] : by_hops) {
    std::printf("  %zu hops: %zu jobs, p50 %.1f ms, p99 %.1f ms\n", number_of_hops, values.size(), quantile(values, 0.5),
                quantile(values, 0.99));
  }
  std::printf("later than %.0f ms: %d, of these while the machine stood still %d, while only the disk was slow %d\n", kLateMs, late,
              still, slow);
  return missing == 0 && early == 0 ? 0 : 1;
}

}  // namespace
}  // namespace bide::rabbitmq_test

int main(int count, char** arguments) {
  bide::rabbitmq_test::Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    if (name == "--nodes") options.nodes = std::atoi(arguments[i + 1]);
    if (name == "--options") options.url_options = arguments[i + 1];
    if (name == "--per-second") options.per_second = std::atoi(arguments[i + 1]);
    if (name == "--seconds") options.seconds = std::atoi(arguments[i + 1]);
  }
  return bide::rabbitmq_test::run(options);
}
