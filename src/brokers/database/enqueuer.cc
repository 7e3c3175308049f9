#include "brokers/database/enqueuer.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "core/job_rules.h"
#include "platform/clock.h"

namespace bide::brokers::database {

using std::chrono::steady_clock;

namespace {

constexpr std::size_t kJobsAStep = 1000;
constexpr std::size_t kBytesAStep = 8 << 20;
constexpr Milliseconds kLookForServer{1'000};

std::size_t bytes_of(const Job& job) {
  std::size_t bytes = 300 + job.body.size() + job.unique_key.size();
  for (const auto& [name, value] : job.headers) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace

Enqueuer::Enqueuer(JobStore& store, IdSource& ids, Granter& granter)
    : ids_(ids), granter_(granter), lane_(store, [this](Lane& lane) { return step(lane); }) {}

void Enqueuer::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  const Time now{Milliseconds(platform::real_clock().now().wall_us / 1000)};
  Call call{.done = std::move(done)};
  call.results.reserve(jobs.size());
  for (Job& job : jobs) {
    Status valid = core::validate(job, now);
    if (valid) valid = core::check_kept(job, kKept);
    if (!valid) {
      call.results.push_back(valid.error());
      continue;
    }
    if (job.id.is_nil()) job.id = ids_.next_id();
    call.places.push_back(call.results.size());
    call.results.push_back(Enqueued{job.id});
    call.bytes += bytes_of(job);
    call.jobs.push_back(std::move(job));
  }
  if (call.jobs.empty()) return call.done(std::move(call.results));
  {
    std::unique_lock lock(mutex_);
    if (closed_) {
      lock.unlock();
      return call.done(Error{ErrorCode::kUnavailable, "the broker is closed"});
    }
    if (waiting_bytes_ > 0 && waiting_bytes_ + call.bytes > kWaitingBytes) {
      lock.unlock();
      return call.done(Error{ErrorCode::kOverloaded, "too many jobs wait for the server to take them; try again soon"});
    }
    waiting_bytes_ += call.bytes;
    waiting_.push_back(std::move(call));
  }
  lane_.wake();
}

Pressure Enqueuer::pressure() const {
  if (const std::string trouble = lane_.trouble(); !trouble.empty()) {
    return {Pressure::Level::kBlocked, trouble, Milliseconds(1'000), Pressure::Cause::kUnreachable};
  }
  const std::lock_guard lock(mutex_);
  if (waiting_bytes_ < kWaitingBytes / 2) return {};
  const Milliseconds drained = drain_rate_.time_to_drain(waiting_bytes_ - kWaitingBytes / 2, steady_clock::now());
  return {Pressure::Level::kHigh, "many jobs wait for the server to take them", std::max(drained, Milliseconds(10)),
          Pressure::Cause::kQueueLength};
}

std::optional<Moment> Enqueuer::step(Lane& lane) {
  for (;;) {
    std::vector<Call> calls;
    {
      const std::lock_guard lock(mutex_);
      std::size_t jobs = 0;
      std::size_t bytes = 0;
      while (!waiting_.empty() && (calls.empty() || (jobs + waiting_.front().jobs.size() <= kJobsAStep &&
                                                     bytes + waiting_.front().bytes <= kBytesAStep))) {
        jobs += waiting_.front().jobs.size();
        bytes += waiting_.front().bytes;
        calls.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    if (calls.empty()) {
      // Pressure says that the server is away until it is seen again, also when nobody enqueues because of that.
      if (lane.trouble().empty() || lane.is_stopping() || lane.connect()) return std::nullopt;
      return steady_clock::now() + kLookForServer;
    }
    std::size_t bytes = 0;
    for (const Call& call : calls) bytes += call.bytes;
    send(lane, std::move(calls));
    drain_rate_.drained(bytes, steady_clock::now());
    const std::lock_guard lock(mutex_);
    waiting_bytes_ -= bytes;
  }
}

void Enqueuer::send(Lane& lane, std::vector<Call> calls) {
  std::vector<Job> joined;
  const bool is_alone = calls.size() == 1;
  if (!is_alone) {
    for (Call& call : calls) {
      std::move(call.jobs.begin(), call.jobs.end(), std::back_inserter(joined));
    }
  }
  const std::vector<Job>& jobs = is_alone ? calls.front().jobs : joined;
  const auto results = lane.call([&](Session& on) { return on.enqueue(jobs); });
  const bool is_refused = !results && results.error().code != ErrorCode::kUnavailable && results.error().code != ErrorCode::kUnconfirmed;
  if (is_refused && !is_alone) {
    // The server does not like one of them: each for itself.
    auto next = joined.begin();
    for (Call& call : calls) {
      const auto end = next + static_cast<std::ptrdiff_t>(call.places.size());
      call.jobs.assign(std::make_move_iterator(next), std::make_move_iterator(end));
      next = end;
      std::vector<Call> alone;
      alone.push_back(std::move(call));
      send(lane, std::move(alone));
    }
    return;
  }
  if (results) {
    const Moment now = steady_clock::now();
    const Job* last = nullptr;  // Most of a batch go to one queue.
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!(*results)[i] || (*results)[i]->existed) continue;
      if (last != nullptr && last->queue == jobs[i].queue && last->delay <= jobs[i].delay && !last->due && !jobs[i].due) continue;
      last = &jobs[i];
      granter_.look_at(jobs[i].queue, jobs[i].due ? Moment{} : now + jobs[i].delay);
    }
  }
  answer(calls, results);
}

void Enqueuer::stop(Milliseconds at_most) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  lane_.stop(at_most);
  for (Call& call : std::exchange(waiting_, {})) call.done(Error{ErrorCode::kUnavailable, "the broker is closed"});
}

void Enqueuer::answer(std::vector<Call>& calls, const Result<std::vector<Result<Enqueued>>>& results) {
  std::size_t at = 0;
  for (Call& call : calls) {
    if (!results) {
      call.done(results.error());
      continue;
    }
    for (const std::size_t place : call.places) call.results[place] = (*results)[at++];
    call.done(std::move(call.results));
  }
}

}  // namespace bide::brokers::database
