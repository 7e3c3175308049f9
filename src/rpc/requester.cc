#include "rpc/requester.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/duration.h"
#include "core/job_ids.h"
#include "core/quote.h"
#include "core/request_rules.h"
#include "platform/clock.h"
#include "platform/keyed_hash.h"
#include "platform/random.h"
#include "platform/timer_thread.h"

namespace bide {

Job make_request(std::string_view kind, std::string body, const RequestOptions& options) {
  Job job;
  job.kind = kind;
  job.queue = options.queue;
  job.body = std::move(body);
  job.content_type = options.content_type;
  job.headers = options.headers;
  job.headers.emplace_back(core::kRequestHeader, options.durable ? core::kDurableRequest : core::kTransientRequest);
  job.priority = options.priority;
  job.retry = options.retry;
  return job;
}

}  // namespace bide

namespace bide::rpc {

namespace {

using std::chrono::steady_clock;
using platform::Moment;

// So long after its deadline a reply is still noticed, to be counted.
constexpr Milliseconds kLateWait{5'000};
// Workers stop at the deadline. The broker's own limit is for those that do not know of it.
constexpr Milliseconds kLimitBeyondDeadline{5'000};

Error closed() { return {ErrorCode::kInvalidArgument, "the client is closed"}; }

Time wall_now() {
  return std::chrono::floor<Milliseconds>(
      std::chrono::sys_time<std::chrono::microseconds>(std::chrono::microseconds(platform::real_clock().now().wall_us)));
}

}  // namespace

struct Requester::State : std::enable_shared_from_this<Requester::State> {
  struct Pending {
    std::string kind;
    Milliseconds timeout{0};
    Moment time = {};  // Of its entry among the times.
    Completion<Reply> done = {};  // Empty: answered with kTimedOut.
    GiveUp give_up = {};
  };

  const Capabilities capabilities;
  // Until close(), so that it is not a thread of the broker that ends it.
  std::shared_ptr<Broker> broker;
  std::shared_ptr<Inspector> inspector;
  std::unique_ptr<platform::TimerThread> timer;  // From the first request on.

  mutable std::mutex mutex;  // Guards everything below.
  std::condition_variable idle;
  int calling = 0;  // Calls into the broker that come from its own threads, or from the timer's.
  bool is_closed = false;
  platform::KeyedMap<JobId, Pending> pending;
  std::multimap<Moment, JobId> times;  // Deadlines, and when to stop watching for late replies.
  core::JobIdSource ids;
  platform::SystemRandom random;
  RequestStats stats;

  State(std::shared_ptr<Broker> to, std::shared_ptr<Inspector> at)
      : capabilities(of(*to, at != nullptr)), broker(std::move(to)), inspector(std::move(at)) {}

  static Capabilities of(const Broker& broker, bool can_be_asked) {
    Capabilities all = broker.capabilities();
    all.requests = all.requests && can_be_asked;
    return all;
  }

  // The broker outlives what runs: close() waits for it.
  template <class Call>
  void call_broker(Call&& call) {
    {
      const std::lock_guard lock(mutex);
      if (is_closed) return;
      calling += 1;
    }
    call();
    const std::lock_guard lock(mutex);
    calling -= 1;
    idle.notify_all();
  }

  void watch(JobId id) {
    GiveUp give_up =
        inspector->watch(id, [state = weak_from_this(), id](Result<JobInfo> info) {
          if (const auto self = state.lock()) self->take_end(id, std::move(info));
        });
    {
      const std::lock_guard lock(mutex);
      const auto found = pending.find(id);
      if (found != pending.end()) {
        found->second.give_up = std::move(give_up);
        return;
      }
    }
    give_up();  // It has ended already.
  }

  void take_end(JobId id, Result<JobInfo> info) {
    if (!info) {
      if (info.error().code != ErrorCode::kNotFound) return finish(id, info.error());
      return finish(id, Error{ErrorCode::kNotFound, "the request was removed before it was answered"});
    }
    if (info->state == JobState::kDone) {
      return finish(id, Reply{std::move(info->result), std::move(info->result_content_type)});
    }
    remove(id, {.state = JobState::kDead});
    const bool late = info->dead_reason == DeadReason::kExpired ||
                      (!info->history.empty() && info->history.back().fault == Fault::kTimedOut);
    if (late) return finish(id, Error{ErrorCode::kTimedOut, ""});
    std::string text = info->history.empty() ? std::string("the handler failed without a word") : info->history.back().text;
    finish(id, Error{ErrorCode::kHandlerFailed, std::move(text)});
  }

  // A broker that has no results keeps nothing of a request that is over.
  void remove(JobId id, CancelOptions options) {
    if (!capabilities.results || !capabilities.cancel) return;
    call_broker([&] { inspector->cancel({id}, options, [](const Result<std::vector<Status>>&) {}); });
  }

  void finish(JobId id, Result<Reply> result) {
    Pending gone;
    {
      const std::lock_guard lock(mutex);
      const auto found = pending.find(id);
      if (found == pending.end()) return;
      gone = std::move(found->second);
      pending.erase(found);
      const auto [first, last] = times.equal_range(gone.time);
      times.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == id; }));
      if (!gone.done) {
        if (result) stats.late += 1;
        return;
      }
      if (result) {
        stats.replied += 1;
      } else if (result.error().code == ErrorCode::kTimedOut) {
        stats.timed_out += 1;
      } else {
        stats.failed += 1;
      }
    }
    if (!result && result.error().code == ErrorCode::kTimedOut) result = timed_out(gone);
    gone.done(std::move(result));
  }

  static Error timed_out(const Pending& request) {
    return {ErrorCode::kTimedOut, "no reply to " + core::quoted(request.kind) + " within " +
                                      core::format_duration(request.timeout) + "; it may have been run all the same"};
  }

  std::optional<Moment> tick(Moment now) {
    std::vector<std::pair<JobId, Pending>> late;
    std::vector<GiveUp> over;
    std::optional<Moment> next;
    {
      const std::lock_guard lock(mutex);
      while (!times.empty() && times.begin()->first <= now) {
        const JobId id = times.extract(times.begin()).mapped();
        const auto found = pending.find(id);
        if (found == pending.end()) continue;
        Pending& request = found->second;
        if (!request.done) {
          if (request.give_up) over.push_back(std::move(request.give_up));
          pending.erase(found);
          continue;
        }
        stats.timed_out += 1;
        late.emplace_back(id, Pending{request.kind, request.timeout, {}, std::exchange(request.done, nullptr), {}});
        request.time = now + kLateWait;
        times.emplace(request.time, id);
      }
      if (!times.empty()) next = times.begin()->first;
    }
    for (const GiveUp& give_up : over) give_up();
    for (auto& [id, request] : late) {
      remove(id, {});
      request.done(timed_out(request));
    }
    return next;
  }
};

Requester::Requester(std::shared_ptr<Broker> broker, std::shared_ptr<Inspector> inspector)
    : state_(std::make_shared<State>(std::move(broker), std::move(inspector))) {}

Requester::~Requester() { close(); }

void Requester::request(Job job, Milliseconds timeout, Completion<Reply> done) {
  if (!state_->capabilities.requests) {
    return done(Error{ErrorCode::kUnsupported, "this broker carries no replies to requests"});
  }
  if (timeout < Milliseconds(1) || timeout > core::kLongestRequest) {
    return done(Error{ErrorCode::kInvalidArgument, "timeout is " + std::to_string(timeout.count()) +
                                                       " ms; allowed is 1ms to " +
                                                       core::format_duration(core::kLongestRequest)});
  }
  const Moment deadline = steady_clock::now() + timeout;
  const Time now = wall_now();
  job.expires = now + timeout;
  job.time_limit = timeout + kLimitBeyondDeadline;
  bool wake = false;
  bool refused = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (job.id.is_nil()) job.id = state_->ids.next(now.time_since_epoch().count(), state_->random.next());
    refused = state_->is_closed;
    if (!refused) {
      if (state_->timer == nullptr) {
        state_->timer = std::make_unique<platform::TimerThread>([state = state_.get()](Moment at) { return state->tick(at); });
      }
      wake = state_->times.empty() || deadline < state_->times.begin()->first;
      state_->times.emplace(deadline, job.id);
      state_->pending.emplace(job.id, State::Pending{job.kind, timeout, deadline, std::move(done), {}});
      state_->stats.sent += 1;
      state_->calling += 1;
    }
  }
  if (refused) return done(closed());
  if (wake) state_->timer->wake();
  const JobId id = job.id;
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  state_->broker->enqueue(std::move(jobs), [weak = state_->weak_from_this(), id](Result<std::vector<Result<Enqueued>>> answer) {
    const auto state = weak.lock();
    if (!state) return;
    if (!answer) return state->finish(id, answer.error());
    if (answer->size() != 1) return state->finish(id, Error{ErrorCode::kUnconfirmed, "the broker answered too little"});
    if (!answer->front()) return state->finish(id, answer->front().error());
    state->call_broker([&] { state->watch(id); });
  });
  const std::lock_guard lock(state_->mutex);
  state_->calling -= 1;
  state_->idle.notify_all();
}

void Requester::close() {
  platform::KeyedMap<JobId, State::Pending> left;
  std::shared_ptr<Broker> broker;
  std::shared_ptr<Inspector> inspector;
  {
    std::unique_lock lock(state_->mutex);
    if (std::exchange(state_->is_closed, true)) return;
    state_->idle.wait(lock, [&] { return state_->calling == 0; });
    left.swap(state_->pending);
    state_->times.clear();
    broker.swap(state_->broker);
    inspector.swap(state_->inspector);
  }
  state_->timer.reset();
  for (auto& [id, request] : left) {
    if (request.give_up) request.give_up();
    if (request.done) request.done(Error{ErrorCode::kUnconfirmed, "the client was closed before the reply came"});
  }
}

RequestStats Requester::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

}  // namespace bide::rpc
