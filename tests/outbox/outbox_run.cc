// outbox_run: a RabbitMQ of its own is stopped and started again under load, with an outbox in front of it. Says how long
// one enqueue takes while it is there, while it is not and afterwards, beside an fdatasync of this disk and an enqueue
// without the outbox; then every job must have arrived, and those that arrived twice are counted.
//
//   outbox_run [--nodes N] [--up SECONDS] [--down SECONDS] [--per-second N]
//
// Exit status 1: a job was lost, or accepted too few to prove anything.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "outbox/outbox_broker.h"
#include "support/rabbitmq_server.h"
#include "support/temporary_directory.h"

namespace bide::outbox_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

struct Options {
  int nodes = 1;
  int up = 5;
  int down = 10;
  int per_second = 200;
};

enum Phase : int { kUp, kDown, kAgain, kPhases };
constexpr const char* kPhaseNames[] = {"broker up", "broker down", "broker up again"};

double quantile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

void print(const char* name, std::vector<double> values) {
  std::printf("%-28s %6zu times   p50 %8.3f ms   p99 %8.3f ms   max %8.3f ms\n", name, values.size(),
              quantile(values, 0.5), quantile(values, 0.99), quantile(values, 1.0));
  std::fflush(stdout);
}

double ms_since(steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
}

std::vector<double> measure_disk(const std::string& directory) {
  std::vector<double> times;
  const int file = ::open((directory + "/sync").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  const std::string block(512, 'x');
  for (int i = 0; i < 200; ++i) {
    const auto begin = steady_clock::now();
    if (::write(file, block.data(), block.size()) < 0 || ::fdatasync(file) != 0) break;
    times.push_back(ms_since(begin));
  }
  ::close(file);
  return times;
}

Result<JobId> enqueue(Broker& broker, const std::string& body) {
  Job job{.kind = "work", .queue = "load", .body = body};
  auto answers = wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue({job}, std::move(done)); });
  if (!answers) return answers.error();
  if (!answers->front()) return answers->front().error();
  return answers->front()->id;
}

int run(const Options& options) {
  if (!support::RabbitmqServer::is_installed()) {
    std::printf("rabbitmq-server is not installed\n");
    return 0;
  }
  support::RabbitmqServer server(options.nodes);
  support::TemporaryDirectory directory;
  print("write and fdatasync", measure_disk(directory.path()));
  const std::string url = server.url() + "?prefix=outbox&patience=5s";
  {
    auto direct = brokers::open_broker(url);
    if (!direct) return std::fprintf(stderr, "%s\n", direct.error().message.c_str()), 1;
    std::vector<double> times;
    (void)enqueue(*direct->broker, "first");
    for (int i = 0; i < 200; ++i) {
      const auto begin = steady_clock::now();
      Job job{.kind = "work", .queue = "other"};
      (void)wait<std::vector<Result<Enqueued>>>([&](auto done) { direct->broker->enqueue({job}, std::move(done)); });
      times.push_back(ms_since(begin));
    }
    print("enqueue without an outbox", times);
  }
  auto opened = brokers::open_broker(url + "&outbox=" + directory.path() + "/outbox");
  if (!opened) return std::fprintf(stderr, "%s\n", opened.error().message.c_str()), 1;
  auto& outbox = dynamic_cast<outbox::OutboxBroker&>(*opened->broker);

  std::atomic<int> phase{kUp};
  std::atomic<bool> over{false};
  std::mutex mutex;
  std::vector<double> times[kPhases];
  std::set<JobId> accepted;
  std::map<std::string, int> failures;
  constexpr int kProducers = 4;
  std::vector<std::thread> producers;
  for (int number = 0; number < kProducers; ++number) {
    producers.emplace_back([&, number] {
      const auto pace = std::chrono::microseconds(1'000'000 * kProducers / options.per_second);
      auto next = steady_clock::now();
      for (int i = 0; !over; ++i) {
        std::this_thread::sleep_until(next);
        next = std::max(next + pace, steady_clock::now() - 1s);
        const int now = phase;
        const auto begin = steady_clock::now();
        const auto id = enqueue(*opened->broker, std::to_string(number) + " " + std::to_string(i));
        const double took = ms_since(begin);
        const std::lock_guard lock(mutex);
        times[now].push_back(took);
        if (id) {
          accepted.insert(*id);
        } else {
          ++failures[id.error().message];
        }
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(options.up));
  // Stopping and starting load the machine themselves: what is measured are the times in between.
  phase = kPhases - 1;
  for (int node = 0; node < options.nodes; ++node) server.kill(node);
  phase = kDown;
  std::this_thread::sleep_for(std::chrono::seconds(options.down));
  const auto status = outbox.status();
  std::printf("waiting in the outbox: %llu (%s)\n", static_cast<unsigned long long>(status ? status->waiting : 0),
              status ? status->forwarder.problem.c_str() : "");
  phase = kAgain;
  for (int node = 0; node < options.nodes; ++node) server.start(node);
  std::this_thread::sleep_for(std::chrono::seconds(options.up));
  over = true;
  for (std::thread& producer : producers) producer.join();
  for (int i = 0; i < kPhases; ++i) print((std::string("enqueue, ") + kPhaseNames[i]).c_str(), times[i]);
  std::printf("p99 with the broker down against up: %.2f\n", quantile(times[kDown], 0.99) / std::max(quantile(times[kUp], 0.99), 1e-3));

  // Everything that was accepted arrives.
  std::map<JobId, int> arrived;
  std::atomic<std::uint64_t> count{0};
  auto subscription = opened->broker->subscribe({.queues = {{"load", 1}}, .credit = 500}, [&](std::vector<Lease> leases) {
    std::vector<Settlement> settlements;
    {
      const std::lock_guard lock(mutex);
      for (const Lease& lease : leases) {
        ++arrived[lease.job.id];
        settlements.push_back({.lease = {lease.job.id, lease.token}, .outcome = Done{}});
      }
    }
    count += leases.size();
    opened->broker->settle(std::move(settlements), [](const Result<std::vector<Status>>&) {});
  });
  if (!subscription) return std::fprintf(stderr, "%s\n", subscription.error().message.c_str()), 1;
  const auto missing = [&] {
    const std::lock_guard lock(mutex);
    std::size_t lost = 0;
    for (const JobId& id : accepted) lost += arrived.contains(id) ? 0 : 1;
    return lost;
  };
  const auto deadline = steady_clock::now() + 120s;
  while (missing() > 0 && steady_clock::now() < deadline) std::this_thread::sleep_for(50ms);
  const std::size_t lost = missing();
  std::this_thread::sleep_for(1s);
  subscription->reset();
  const std::lock_guard lock(mutex);
  std::size_t twice = 0;
  for (const auto& [id, times_seen] : arrived) twice += times_seen > 1 ? 1 : 0;
  std::printf("accepted %zu, lost %zu, twice %zu\n", accepted.size(), lost, twice);
  for (const auto& [message, times_seen] : failures) std::printf("refused %d times: %s\n", times_seen, message.c_str());
  const std::size_t least = static_cast<std::size_t>(options.per_second * options.down / 4);
  if (accepted.size() < least) std::printf("too few to prove anything\n");
  return lost == 0 && accepted.size() >= least && failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace bide::outbox_test

int main(int argc, char** argv) {
  bide::outbox_test::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const int value = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--nodes") == 0) options.nodes = value;
    if (std::strcmp(argv[i], "--up") == 0) options.up = value;
    if (std::strcmp(argv[i], "--down") == 0) options.down = value;
    if (std::strcmp(argv[i], "--per-second") == 0) options.per_second = value;
  }
  return bide::outbox_test::run(options);
}
