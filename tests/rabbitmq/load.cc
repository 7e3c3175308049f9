#include "rabbitmq/load.h"

#include <algorithm>
#include <stdexcept>

#include "bide/inspector.h"
#include "bide/wait.h"
#include "core/broker_answers.h"
#include "crash/read_back.h"
#include "crash/witness.h"
#include "platform/fatal.h"
#include "support/seeded_random.h"

namespace bide::rabbitmq_test {
namespace {

constexpr Milliseconds kAgain{50};
constexpr Milliseconds kLastWord{5000};  // What has not been said by then will not be.

brokers::OpenedBroker open(const std::string& url) {
  auto opened = brokers::open_broker(url);
  if (!opened) throw std::runtime_error("the broker does not open: " + opened.error().message);
  return std::move(*opened);
}

std::string words(const Lease& lease) { return lease.job.id.to_string() + " " + std::to_string(lease.token); }

}  // namespace

Load::Load(LoadOptions options)
    : options_(std::move(options)),
      injector_(histories_.path(), "injector"),
      producer_(open(options_.producer_url)),
      worker_(open(options_.worker_url)),
      witnessed_producer_(std::make_shared<crash::WitnessBroker>(
          producer_.broker, std::make_shared<crash::HistoryWriter>(histories_.path(), "producer"))),
      worker_history_(std::make_shared<crash::HistoryWriter>(histories_.path(), "worker0")) {
  for (int i = 0; i < options_.workers; ++i) {
    workers_.emplace_back([this, i] { work(options_.seed + 1000 + static_cast<std::uint64_t>(i)); });
  }
  auto subscription = worker_.broker->subscribe({.credit = options_.credit}, [this](std::vector<Lease> leases) {
    const std::lock_guard lock(mutex_);
    for (Lease& lease : leases) {
      worker_history_->say("leased " + words(lease) + " " + std::to_string(lease.attempt) + " " +
                           std::to_string(SubscribeOptions().lease.count()));
      const auto fate = fates_.find(lease.job.id);
      if (fate != fates_.end() && fate->second.ended) forgotten_ += 1;
      leases_.push_back(std::move(lease));
    }
    changed_.notify_all();
  });
  if (!subscription) throw std::runtime_error("no subscription: " + subscription.error().message);
  subscription_ = std::move(*subscription);
  if (options_.warm_up) warm_up();
}

Load::~Load() {
  stop_producing();
  subscription_.reset();
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : workers_) thread.join();
  workers_.clear();
  // Completions may be on their way until the brokers are gone.
  witnessed_producer_.reset();
  producer_ = {};
  worker_ = {};
}

void Load::start_producing() {
  producing_ = true;
  for (int i = 0; i < options_.producers; ++i) {
    producers_.emplace_back([this, i] { produce(options_.seed + static_cast<std::uint64_t>(i)); });
  }
}

void Load::stop_producing() {
  producing_ = false;
  for (std::thread& thread : producers_) thread.join();
  producers_.clear();
}

Job Load::make_job(Milliseconds delay) {
  Job job;
  job.id = next_id();
  job.kind = "work";
  job.delay = delay;
  job.retry = RetryPolicy::fixed(Milliseconds(100), RetryPolicy::kMaxAttemptsLimit);
  return job;
}

void Load::warm_up() {
  // There is a queue for each digit of a delay: after so many at random each has been needed.
  support::SeededRandom random(options_.seed);
  for (int batch = 0; batch < 10; ++batch) {
    std::vector<Job> jobs;
    for (int i = 0; i < 50; ++i) jobs.push_back(make_job(random_delay(random)));
    enqueue(std::move(jobs));
  }
  drain();
}

void Load::enqueue_delayed(int count, Milliseconds delay) {
  std::vector<Job> jobs;
  for (int i = 0; i < count; ++i) jobs.push_back(make_job(delay));
  enqueue(std::move(jobs));
}

Milliseconds Load::random_delay(support::SeededRandom& random) const {
  const auto longest = static_cast<std::uint64_t>(options_.longest_delay.count());
  return Milliseconds(static_cast<std::int64_t>(random.next_below(longest + 1)));
}

// Returns when all are confirmed, or patience has run out.
void Load::enqueue(std::vector<Job> jobs) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!jobs.empty() && std::chrono::steady_clock::now() < give_up) {
    const auto results = wait<std::vector<Result<Enqueued>>>(
        [&](auto done) { witnessed_producer_->enqueue(jobs, std::move(done)); });
    std::vector<Job> left;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (results && (*results)[i]) {
        note_confirmed(jobs[i].id);
      } else {
        const Error& error = results ? (*results)[i].error() : results.error();
        platform::require(error.code != ErrorCode::kInvalidArgument, error.message);
        if (error.code != ErrorCode::kUnconfirmed) ++refused_;
        left.push_back(std::move(jobs[i]));
        left.back().id = next_id();
      }
    }
    jobs = std::move(left);
    if (!jobs.empty()) std::this_thread::sleep_for(kAgain);
  }
}

void Load::produce(std::uint64_t seed) {
  support::SeededRandom random(seed);
  while (producing_) {
    std::vector<Job> jobs;
    for (int i = 0; i < options_.batch; ++i) {
      const bool waits = random.chance(0.33);
      jobs.push_back(make_job(waits ? random_delay(random) : Milliseconds(0)));
      jobs.back().body = std::string(random.next_below(400), 'x');
    }
    enqueue(std::move(jobs));
    std::this_thread::sleep_for(options_.pause);
  }
}

void Load::work(std::uint64_t seed) {
  support::SeededRandom random(seed);
  for (;;) {
    Lease lease;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !leases_.empty() || !unsaid_.empty(); });
      if (!unsaid_.empty()) {
        const auto say_again = std::move(unsaid_.front());
        unsaid_.pop_front();
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        say_again();
        continue;
      }
      if (leases_.empty()) return;
      lease = std::move(leases_.front());
      leases_.pop_front();
    }
    worker_history()->say("start " + words(lease) + " " + std::to_string(lease.attempt));
    std::this_thread::sleep_for(options_.handler_time);
    worker_history()->say("finish " + words(lease));
    settle(lease, random.next());
  }
}

void Load::settle(const Lease& lease, std::uint64_t chance) {
  Settlement settlement{.lease = {lease.job.id, lease.token}};
  std::vector<std::string> lines;
  bool is_final = true;
  if (lease.attempt == 1 && chance % 8 == 0) {
    const Milliseconds after(static_cast<std::int64_t>(chance >> 40) % 300);
    settlement.outcome = RetryAt{.after = after, .error = "the first attempt"};
    lines.push_back("settle " + words(lease) + " " + std::string(crash::kRetry) + " " + std::to_string(after.count()));
    is_final = false;
  } else if (chance % 64 == 1) {
    settlement.outcome = Dead{.error = "enough"};
    lines.push_back("settle " + words(lease) + " " + std::string(crash::kDead) + " 0");
  } else {
    lines.push_back("settle " + words(lease) + " " + std::string(crash::kDone) + " 0");
  }
  if (chance % 16 == 2 && lease.job.kind == "work") {
    Job effect = make_job(Milliseconds(0));
    effect.kind = "effect";
    lines.push_back("effect " + effect.id.to_string() + " 0 " + words(lease));
    settlement.effects.push_back(std::move(effect));
  }
  if (is_final) note_asked(lease.job.id);
  const std::shared_ptr<crash::HistoryWriter> history = worker_history();
  history->say_all(lines);
  send(settlement, words(lease), is_final, history);
}

void Load::send(const Settlement& settlement, const std::string& lease, bool is_final,
                const std::shared_ptr<crash::HistoryWriter>& history) {
  worker_.broker->settle({settlement}, [this, history, lease, is_final, settlement](const Result<std::vector<Status>>& answer) {
    const Status status = core::status_at(answer, 0);
    if (status) {
      history->say("settled " + lease);
      for (const Job& effect : settlement.effects) note_confirmed(effect.id);
      if (is_final) note_ended(settlement.lease.id);
      return;
    }
    if (status.error().code == ErrorCode::kLeaseLost) history->say("not_settled " + lease);
    if (core::ends_lease(status)) return;
    // As a worker does: whoever does not know says it again, which is harmless.
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    unsaid_.push_back([this, settlement, lease, is_final, history] { send(settlement, lease, is_final, history); });
    changed_.notify_all();
  });
}

void Load::note_confirmed(const JobId& id) {
  const std::lock_guard lock(mutex_);
  Fate& fate = fates_[id];
  if (fate.confirmed) return;
  fate.confirmed = true;
  confirmed_ += 1;
  if (!fate.ended) unfinished_ += 1;
  if (!fate.may_have_ended) untouched_ += 1;
  last_confirmed_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Load::note_asked(const JobId& id) {
  const std::lock_guard lock(mutex_);
  Fate& fate = fates_[id];
  if (fate.may_have_ended) return;
  fate.may_have_ended = true;
  if (fate.confirmed) untouched_ -= 1;
  changed_.notify_all();
}

void Load::note_ended(const JobId& id) {
  const std::lock_guard lock(mutex_);
  Fate& fate = fates_[id];
  if (fate.ended) return;
  fate.ended = true;
  done_ += 1;
  if (fate.confirmed) unfinished_ -= 1;
  changed_.notify_all();
}

JobId Load::next_id() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = ++last_id_;
  std::array<std::uint8_t, JobId::kSize> bytes{1, 2, 3, 4, 5, 6, 0x70, 7, 0x80, 8, 9};
  for (unsigned i = 0; i < 5; ++i) bytes[11 + i] = static_cast<std::uint8_t>(number >> (32 - 8 * i));
  return JobId(bytes);
}

bool Load::await(const std::function<bool()>& holds, std::chrono::milliseconds at_most) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, holds);
}

bool Load::await_confirmed(std::uint64_t count) const {
  return await([&] { return confirmed_ >= count; });
}

bool Load::await_done(std::uint64_t count) const {
  return await([&] { return done_ >= count; });
}

bool Load::drain(std::chrono::milliseconds at_most) const {
  if (!await([&] { return untouched_ == 0; }, at_most)) return false;
  await([&] { return unfinished_ == 0; }, std::min<std::chrono::milliseconds>(at_most, kLastWord));
  return true;
}

std::uint64_t Load::confirmed() const {
  const std::lock_guard lock(mutex_);
  return confirmed_;
}

std::uint64_t Load::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

std::uint64_t Load::forgotten() const {
  const std::lock_guard lock(mutex_);
  return forgotten_;
}

std::uint64_t Load::unfinished() const {
  const std::lock_guard lock(mutex_);
  return unfinished_;
}

std::chrono::steady_clock::time_point Load::last_confirmed() const {
  const std::lock_guard lock(mutex_);
  return last_confirmed_;
}

std::shared_ptr<crash::HistoryWriter> Load::worker_history() const {
  const std::lock_guard lock(mutex_);
  return worker_history_;
}

void Load::note_outage(const std::string& what) {
  const std::lock_guard lock(mutex_);
  // For the checker it is as if the worker had been stopped, and another had taken its place.
  const std::string before = "worker" + std::to_string(outages_);
  injector_.say_all({"killed " + before + " " + what, "gone " + before + " 0"});
  outages_ += 1;
  worker_history_ = std::make_shared<crash::HistoryWriter>(histories_.path(), "worker" + std::to_string(outages_));
}

crash::Findings Load::examine() {
  stop_producing();
  subscription_.reset();
  const Capabilities can = worker_.broker->capabilities();
  return crash::check(crash::read_histories(histories_.path()), crash::read_back(can, *worker_.inspector), can);
}

}  // namespace bide::rabbitmq_test
