#include "outbox/forwarder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "bide/wait.h"
#include "outbox/envelope.h"

namespace bide::outbox {

namespace {

constexpr std::size_t kMostInABatch = 1024;
constexpr std::size_t kMostBytesInABatch = 8 << 20;
constexpr Milliseconds kLease{60'000};
constexpr std::chrono::milliseconds kExtendEvery{15'000};
constexpr std::chrono::milliseconds kLook{250};  // For whether this process is the one to forward, and for the end.
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr std::chrono::milliseconds kRateOver{2000};

Time wall_now() { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }

enum class Verdict { kTaken, kHeldKey, kRefused, kLater };

Verdict verdict_of(const Result<Enqueued>& result) {
  if (result) return Verdict::kTaken;
  switch (result.error().code) {
    case ErrorCode::kAlreadyExists: return Verdict::kHeldKey;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported: return Verdict::kRefused;
    default: return Verdict::kLater;
  }
}

}  // namespace

Forwarder::Forwarder(Broker& local, std::function<bool()> may_forward, OpenTarget open)
    : local_(local), may_forward_(std::move(may_forward)), open_(std::move(open)), thread_([this] { run(); }) {}

void Forwarder::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_by_ = Clock::now() + kLinger;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<const Target> Forwarder::target() const {
  const std::lock_guard lock(mutex_);
  return target_;
}

Forwarder::Stats Forwarder::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.reached = target_ != nullptr;
  return stats;
}

std::optional<Status> Forwarder::wait_for_first_answer(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return first_answer_.has_value(); });
  return first_answer_;
}

bool Forwarder::stopping() const {
  const std::lock_guard lock(mutex_);
  return stop_by_.has_value();
}

bool Forwarder::pause(std::chrono::milliseconds span) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, span, [this] { return stop_by_.has_value(); });
}

void Forwarder::set_problem(std::string problem) {
  const std::lock_guard lock(mutex_);
  stats_.problem = std::move(problem);
}

// Opening may take as long as its broker is patient, and nobody who ends waits for that: it has a thread of its own.
Result<Target> Forwarder::try_to_open() {
  struct Opening {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result<Target>> result;
  };
  const auto opening = std::make_shared<Opening>();
  std::thread([opening, open = open_] {
    Result<Target> result = open();
    const std::lock_guard lock(opening->mutex);
    opening->result.emplace(std::move(result));
    opening->done.notify_one();
  }).detach();
  std::unique_lock lock(opening->mutex);
  while (!opening->done.wait_for(lock, std::chrono::milliseconds(50), [&] { return opening->result.has_value(); })) {
    const std::lock_guard own(mutex_);
    if (stop_by_ && Clock::now() > *stop_by_) return Error{ErrorCode::kUnavailable, "the broker has not answered"};
  }
  return std::move(*opening->result);
}

bool Forwarder::open_target() {
  Result<Target> opened = try_to_open();
  const std::lock_guard lock(mutex_);
  if (opened) {
    target_ = std::make_shared<const Target>(std::move(*opened));
    stats_.problem.clear();
  } else {
    stats_.problem = opened.error().message;
  }
  if (!first_answer_) first_answer_ = opened ? Status() : Status(opened.error());
  changed_.notify_all();
  return target_ != nullptr;
}

void Forwarder::run() {
  for (auto span = kFirstPause; !open_target(); span = std::min(span * 2, kLongestPause)) {
    if (pause(span)) return;
  }
  auto span = kFirstPause;
  Time in_doubt{};
  for (;;) {
    const bool last = stopping();
    if (!may_forward_()) {
      if (last || pause(kLook)) return;
      continue;
    }
    if (subscription_ == nullptr) {
      auto subscribed = local_.subscribe({.queues = {{std::string(kOutboxQueue), 1}},
                                          .credit = 2 * static_cast<int>(kMostInABatch),
                                          .lease = kLease,
                                          .worker = "outbox"},
                                         [arrivals = arrivals_](std::vector<Lease> leases) {
                                           arrivals->add(std::move(leases));
                                         });
      if (subscribed) {
        subscription_ = std::move(*subscribed);
      } else {
        set_problem("the outbox does not hand out its jobs: " + subscribed.error().message);
        if (pause(kLongestPause)) return;
        continue;
      }
    }
    std::vector<Lease> leases = arrivals_->take(kMostInABatch, kLook);
    if (leases.empty()) {
      if (last) break;
      continue;
    }
    if (leases.front().due <= in_doubt) {
      std::stable_sort(leases.begin(), leases.end(), [](const Lease& a, const Lease& b) {
        return std::tie(a.due, a.job.id) < std::tie(b.due, b.job.id);
      });
    }
    if (forward(std::move(leases))) {
      span = kFirstPause;
      const std::lock_guard lock(mutex_);
      if (stop_by_ && Clock::now() > *stop_by_) break;
      continue;
    }
    // What came meanwhile goes back too, and comes again behind what was refused: so the order stays.
    subscription_.reset();
    give_back(arrivals_->take_all());
    // Except among those of one millisecond, where what is given back comes behind what came meanwhile; the ids that the
    // store gives are in the order of acceptance.
    in_doubt = wall_now();
    if (last || pause(span)) return;
    span = std::min(span * 2, kLongestPause);
  }
  subscription_.reset();
  give_back(arrivals_->take_all());
}

bool Forwarder::forward(std::vector<Lease> leases) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < leases.size() && (count == 0 || bytes < kMostBytesInABatch)) bytes += leases[count++].job.body.size();
  std::vector<Job> jobs;
  std::vector<LeaseRef> sent;
  std::vector<Settlement> settlements;
  std::vector<LeaseRef> held;
  const Time now = wall_now();
  for (const Lease& lease : leases) held.push_back({lease.job.id, lease.token});
  for (std::size_t i = 0; i < count; ++i) {
    const Milliseconds age = std::max(now - leases[i].due, Milliseconds(0));
    auto job = unclose(std::move(leases[i].job), age, now);
    if (job) {
      jobs.push_back(std::move(*job));
      sent.push_back(held[i]);
    } else {
      settlements.push_back({.lease = held[i], .outcome = Dead{.error = job.error().message}});
    }
  }
  std::vector<LeaseRef> rest(held.begin() + static_cast<std::ptrdiff_t>(count), held.end());
  bool all_taken = true;
  std::size_t taken = 0;
  const auto results = jobs.empty() ? std::vector<Result<Enqueued>>() : send(std::move(jobs), held);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const Result<Enqueued> none(Error{ErrorCode::kUnavailable, "the broker did not answer before the end"});
    const Result<Enqueued>& result = results && i < results->size() ? (*results)[i] : none;
    const Verdict verdict = verdict_of(result);
    Settlement settlement{.lease = sent[i], .outcome = Done{}};
    if (verdict == Verdict::kRefused) settlement.outcome = Dead{.error = result.error().message};
    if (verdict == Verdict::kLater) {
      settlement.outcome = Returned{.note = result.error().message};
      if (all_taken) set_problem(result.error().message);
      all_taken = false;
    }
    settlements.push_back(std::move(settlement));
    const std::lock_guard lock(mutex_);
    if (verdict == Verdict::kTaken) {
      ++taken;
      ++stats_.forwarded;
      if (result->existed) ++stats_.existed;
    }
    if (verdict == Verdict::kHeldKey) ++stats_.duplicates;
    if (verdict == Verdict::kRefused) ++stats_.refused;
  }
  settle(std::move(settlements));
  count_rate(taken);
  // Those that did not fit are the next: nothing has arrived before them.
  if (!rest.empty() && all_taken) {
    leases.erase(leases.begin(), leases.begin() + static_cast<std::ptrdiff_t>(count));
    return forward(std::move(leases));
  }
  std::vector<Settlement> back;
  for (const LeaseRef& lease : rest) back.push_back({.lease = lease, .outcome = Returned{}});
  settle(std::move(back));
  const std::lock_guard lock(mutex_);
  if (all_taken) stats_.problem.clear();
  if (!all_taken) ++stats_.retried;
  return all_taken;
}

// Nothing: it was told to stop, and there was no answer for too long.
std::optional<std::vector<Result<Enqueued>>> Forwarder::send(std::vector<Job> jobs,
                                                             const std::vector<LeaseRef>& held) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Result<std::vector<Result<Enqueued>>>> result;
  };
  const auto answer = std::make_shared<Answer>();
  const std::size_t count = jobs.size();
  target()->broker->enqueue(std::move(jobs), [answer](Result<std::vector<Result<Enqueued>>> result) {
    const std::lock_guard lock(answer->mutex);
    answer->result.emplace(std::move(result));
    answer->came.notify_one();
  });
  Clock::time_point extend_at = Clock::now() + kExtendEvery;
  std::unique_lock lock(answer->mutex);
  while (!answer->came.wait_for(lock, kLook, [&] { return answer->result.has_value(); })) {
    {
      const std::lock_guard own(mutex_);
      if (stop_by_ && Clock::now() > *stop_by_) return std::nullopt;
    }
    if (Clock::now() < extend_at) continue;
    extend_at = Clock::now() + kExtendEvery;
    std::vector<LeaseRef> leases = held;
    for (const LeaseRef& waiting : arrivals_->refs()) leases.push_back(waiting);
    local_.extend(std::move(leases), [](const Result<std::vector<Extended>>&) {});
  }
  if (!*answer->result) return std::vector<Result<Enqueued>>(count, answer->result->error());
  return std::move(**answer->result);
}

void Forwarder::settle(std::vector<Settlement> settlements) {
  if (settlements.empty()) return;
  const auto statuses =
      wait<std::vector<Status>>([&](auto done) { local_.settle(std::move(settlements), std::move(done)); });
  // What could not be settled is sent again, under the same ids.
  if (!statuses) set_problem("the outbox could not be written: " + statuses.error().message);
}

void Forwarder::give_back(std::vector<Lease> leases) {
  std::vector<Settlement> settlements;
  for (const Lease& lease : leases) {
    settlements.push_back({.lease = {lease.job.id, lease.token}, .outcome = Returned{}});
  }
  settle(std::move(settlements));
}

void Forwarder::count_rate(std::size_t jobs) {
  const std::lock_guard lock(mutex_);
  rate_jobs_ += jobs;
  const std::chrono::duration<double> span = Clock::now() - rate_since_;
  if (span < kRateOver && stats_.jobs_a_second > 0) return;
  if (span.count() > 0) stats_.jobs_a_second = static_cast<double>(rate_jobs_) / span.count();
  if (span < kRateOver) return;
  rate_since_ = Clock::now();
  rate_jobs_ = 0;
}

}  // namespace bide::outbox
