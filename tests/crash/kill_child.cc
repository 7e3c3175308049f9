// The process that is killed: it opens an engine in a directory, puts jobs in with two threads, runs them with two
// others, and appends what it saw to a history of its name (see history.h).
//
//   kill_child DIRECTORY HISTORIES NAME SEED           until somebody kills it
//   kill_child DIRECTORY HISTORIES NAME SEED --drain   puts nothing in, and ends when every job has been run

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "bide/wait.h"
#include "core/job_ids.h"
#include "crash/history.h"
#include "crash/witness.h"
#include "engine/engine.h"
#include "platform/clock.h"
#include "platform/random.h"

namespace {

using bide::Job;
using bide::Lease;
using bide::crash::HistoryWriter;
using bide::crash::WitnessBroker;
using bide::engine::Engine;

constexpr std::size_t kMostUnfinished = 3000;

class Workplace {
 public:
  void add(std::vector<Lease> leases) {
    const std::lock_guard lock(mutex_);
    for (Lease& lease : leases) leases_.push_back(std::move(lease));
    changed_.notify_all();
  }
  bool take(Lease& lease) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !leases_.empty(); });
    if (leases_.empty()) return false;
    lease = std::move(leases_.front());
    leases_.pop_front();
    return true;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Lease> leases_;
  bool ended_ = false;
};

void work(WitnessBroker& broker, Workplace& workplace, HistoryWriter& history) {
  Lease lease;
  while (workplace.take(lease)) {
    const std::string name = lease.job.id.to_string() + " " + std::to_string(lease.token);
    history.say("start " + name + " " + std::to_string(lease.attempt));
    bide::Settlement settlement{.lease = {lease.job.id, lease.token}};
    const bool again = lease.attempt == 1 && lease.job.id.bytes()[15] % 8 == 0;
    if (again) settlement.outcome = bide::RetryAt{.after = bide::Milliseconds(1), .error = "the first attempt"};
    history.say("finish " + name);
    broker.settle({settlement}, [](const bide::Result<std::vector<bide::Status>>&) {});
  }
}

void produce(WitnessBroker& broker, Engine& engine, std::uint64_t seed) {
  std::uint64_t state = seed * 2 + 1;
  bide::core::JobIdSource ids;
  bide::platform::SystemRandom random;
  for (;;) {
    std::vector<Job> jobs;
    for (int left = 10; left > 0; --left) {
      state = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9 + 1;
      Job job;
      job.id = ids.next(bide::platform::real_clock().now().wall_us / 1000, random.next());
      job.kind = "work";
      job.retry = bide::RetryPolicy::fixed(bide::Milliseconds(1), 10'000);
      if (state % 3 == 0) job.delay = bide::Milliseconds(static_cast<std::int64_t>(state >> 32) % 80);
      job.body = std::string(state % 500, 'x');
      jobs.push_back(std::move(job));
    }
    const auto results = bide::wait<std::vector<bide::Result<bide::Enqueued>>>(
        [&](auto done) { broker.enqueue(std::move(jobs), std::move(done)); });
    if (!results) std::abort();
    for (;;) {
      const auto audit = bide::wait<bide::AuditReport>([&](auto done) { engine.audit(std::move(done)); });
      if (!audit || !audit->ok()) std::abort();
      if (audit->live < kMostUnfinished) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const bool drain = argc > 5 && std::strcmp(argv[5], "--drain") == 0;
  const auto history = std::make_shared<HistoryWriter>(argv[2], argv[3]);
  bide::engine::EngineOptions options;
  options.directory = argv[1];
  options.segment_bytes = 256 << 10;
  options.snapshot_bytes = 512 << 10;
  options.max_crashes = 1'000'000;
  options.done_limit = 10'000'000;
  auto opened = Engine::open(options);
  if (!opened) {
    std::fprintf(stderr, "kill_child: %s\n", opened.error().message.c_str());
    return 1;
  }
  const std::shared_ptr<Engine> shared = std::move(*opened);
  Engine& engine = *shared;
  WitnessBroker broker(shared, history);
  Workplace workplace;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&] { work(broker, workplace, *history); });
  auto subscription = broker.subscribe({.credit = 50, .lease = std::chrono::hours(1)},
                                       [&](std::vector<Lease> leases) { workplace.add(std::move(leases)); });
  if (!subscription) return 1;
  if (!drain) {
    const std::uint64_t seed = std::strtoull(argv[4], nullptr, 10);
    threads.emplace_back([&] { produce(broker, engine, seed); });
    produce(broker, engine, seed + 1);
  }
  for (;;) {
    const auto audit = bide::wait<bide::AuditReport>([&](auto done) { engine.audit(std::move(done)); });
    if (!audit || !audit->ok()) return 1;
    if (audit->live == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  subscription->reset();
  workplace.end();
  for (std::thread& thread : threads) thread.join();
  return 0;
}
