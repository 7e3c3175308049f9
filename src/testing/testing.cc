#include "bide/testing.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "bide/wait.h"
#include "engine/engine.h"
#include "platform/clock_watchers.h"
#include "platform/clock.h"
#include "platform/random.h"
#include "worker/attempt.h"
#include "worker/attempt_runner.h"
#include "worker/worker_state.h"

namespace bide::testing {

namespace {

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "bide: the test kit cannot go on: %s\n", what.c_str());
  std::abort();
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

// Starts at the present, so that jobs with real dates mean what they say, and at a whole millisecond, so that what is
// delayed by three hours is due in three hours to the dot. Moves only when told to.
class MovableClock : public platform::Clock {
 public:
  platform::Instant now() const override {
    platform::Instant now = start_;
    now.wall_us += passed_us_.load();
    now.elapsed_us += passed_us_.load();
    return now;
  }
  void advance(Milliseconds time) {
    passed_us_ += std::chrono::microseconds(time).count();
    watchers_.call();
  }
  std::shared_ptr<void> watch(std::function<void()> jumped) const override { return watchers_.add(std::move(jumped)); }

 private:
  static platform::Instant whole_millisecond() {
    const platform::Instant now = platform::real_clock().now();
    return {.wall_us = now.wall_us / 1000 * 1000, .elapsed_us = now.elapsed_us / 1000 * 1000};
  }

  const platform::Instant start_ = whole_millisecond();
  std::atomic<std::int64_t> passed_us_ = 0;
  platform::ClockWatchers watchers_;
};

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    platform::SystemRandom random;
    std::error_code error;
    const auto parent = std::filesystem::temp_directory_path(error);
    if (error) give_up("no temporary directory: " + error.message());
    path_ = parent / ("bide-test-" + std::to_string(random.next()));
    if (!std::filesystem::create_directory(path_, error)) give_up("cannot make " + path_.string());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::shared_ptr<engine::Engine> open_engine(const std::string& directory, platform::Clock& clock,
                                            platform::Random& random) {
  engine::EngineOptions options;
  options.directory = directory;
  options.durability = engine::Durability::kNone;
  options.clock = &clock;
  options.random = &random;
  return need(engine::Engine::open(std::move(options)));
}

// Leases on their way from the engine's thread to the kit's.
class Basket {
 public:
  void put(std::vector<Lease> leases) {
    std::lock_guard lock(mutex_);
    for (Lease& lease : leases) leases_.push_back(std::move(lease));
  }
  std::vector<Lease> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(leases_, {});
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::vector<Lease> leases_;
};

}  // namespace

struct Kit::State {
  explicit State(WorkerOptions options)
      : engine(open_engine(directory.path(), clock, random)), client(engine, engine),
        worker(client, std::move(options)) {}

  TemporaryDirectory directory;
  MovableClock clock;
  platform::SystemRandom random;
  std::shared_ptr<engine::Engine> engine;
  Client client;
  Worker worker;
};

Kit::Kit(WorkerOptions options) : state_(std::make_unique<State>(std::move(options))) {}

Kit::~Kit() = default;

Client& Kit::client() { return state_->client; }

Worker& Kit::worker() { return state_->worker; }

Time Kit::now() const {
  const worker::ClockScope scope(state_->clock);
  return worker::wall_now();
}

void Kit::advance(Milliseconds time) {
  if (time < Milliseconds(0)) give_up("time does not go back");
  state_->clock.advance(time);
  state_->engine->wait_until_idle();
}

std::size_t Kit::run_due() {
  const worker::ClockScope scope(state_->clock);
  const worker::Setup& setup = state_->worker.state_->setup;
  if (Status valid = setup.validate(); !valid) give_up(valid.error().message);
  worker::AttemptRunner runner(setup);
  const auto link = std::make_shared<worker::WorkerLink>();
  link->save_body = [engine = state_->engine.get()](LeaseRef lease, std::string body) -> Status {
    return wait<void>([&](auto done) { engine->save_body(lease, std::move(body), std::move(done)); });
  };
  link->save_step = [engine = state_->engine.get()](LeaseRef lease, Step step) -> Status {
    return wait<void>([&](auto done) { engine->save_step(lease, std::move(step), std::move(done)); });
  };
  link->report_progress = [engine = state_->engine.get()](LeaseRef lease, Progress progress) {
    engine->report_progress(lease, std::move(progress));
  };
  link->find = [engine = state_->engine.get()](JobId id) {
    return wait<JobInfo>([&](auto done) { engine->find(id, std::move(done)); });
  };

  // One lease at a time: what a handler enqueues takes its place among what is due already.
  SubscribeOptions wanted{.queues = {}, .credit = 1, .lease = setup.options.lease, .worker = runner.name()};
  for (const WorkerQueue& queue : setup.options.queues) wanted.queues.push_back({queue.name, queue.weight});
  Basket basket;
  const auto subscription =
      need(state_->engine->subscribe(std::move(wanted), [&basket](std::vector<Lease> leases) {
        basket.put(std::move(leases));
      }));

  std::size_t attempts = 0;
  while (true) {
    state_->engine->wait_until_idle();
    std::vector<Lease> leases = basket.take();
    if (leases.empty()) return attempts;
    worker::LeaseBatch batch(std::move(leases), std::chrono::steady_clock::now(), link);
    while (worker::Attempt* attempt = batch.claim()) {
      attempt->start();
      const auto before = std::chrono::steady_clock::now();
      std::vector<Settlement> settlements;
      settlements.push_back(runner.run(*attempt));
      runner.tell_hooks(*attempt, settlements[0].outcome, std::chrono::steady_clock::now() - before);
      const auto statuses = need(wait<std::vector<Status>>(
          [&](auto done) { state_->engine->settle(std::move(settlements), std::move(done)); }));
      if (!statuses.at(0)) give_up(statuses[0].error().message);
      ++attempts;
    }
  }
}

std::size_t Kit::play(Milliseconds time) {
  const Time end = now() + time;
  std::size_t attempts = run_due();
  while (true) {
    std::optional<Time> next;
    for (const JobInfo& job : list({.states = {JobState::kScheduled}})) {
      if (job.due > now() && (!next || job.due < *next)) next = job.due;
    }
    if (!next || *next > end) break;
    advance(*next - now());
    attempts += run_due();
  }
  advance(end - now());
  return attempts;
}

JobInfo Kit::find(JobId id) { return need(state_->client.find(id)); }

std::string Kit::why(JobId id) {
  const auto explanation =
      wait<Explanation>([&](auto done) { state_->engine->explain(id, std::move(done)); });
  return explanation ? explanation->text : explanation.error().message;
}

std::vector<JobInfo> Kit::list(const JobFilter& filter) {
  std::vector<JobInfo> all;
  std::string cursor;
  do {
    JobPage page = need(wait<JobPage>(
        [&](auto done) { state_->engine->list(filter, cursor, 1000, std::move(done)); }));
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(all));
    cursor = std::move(page.next);
  } while (!cursor.empty());
  std::stable_sort(all.begin(), all.end(), [](const JobInfo& a, const JobInfo& b) { return a.due < b.due; });
  return all;
}

std::vector<JobInfo> Kit::enqueued(std::string_view kind) {
  return list({.states = {JobState::kScheduled, JobState::kReady}, .kind = std::string(kind)});
}

std::vector<JobInfo> Kit::failed(std::string_view kind) {
  std::vector<JobInfo> jobs =
      list({.states = {JobState::kScheduled, JobState::kReady, JobState::kDead}, .kind = std::string(kind)});
  std::erase_if(jobs, [](const JobInfo& job) { return job.state != JobState::kDead && job.counts.total() == 0; });
  return jobs;
}

std::vector<JobInfo> Kit::done(std::string_view kind) {
  return list({.states = {JobState::kDone}, .kind = std::string(kind)});
}

}  // namespace bide::testing
