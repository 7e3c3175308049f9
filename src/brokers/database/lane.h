// Lane: a thread with a session of its own at the server. It runs one step whenever it is woken or the time has come
// that the step named, and brings the session back when it was lost.

#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "brokers/database/job_store.h"
#include "platform/backoff.h"
#include "platform/timer_thread.h"

namespace bide::brokers::database {

using platform::Moment;

class Lane {
 public:
  // Does all that there is to do, by call(); returns when to run next, nothing: not before wake(). Never fails: what
  // cannot be done now is answered with an error, or left for the next time.
  using Step = std::function<std::optional<Moment>(Lane&)>;

  Lane(JobStore& store, Step step) : store_(store), step_(std::move(step)) {}
  ~Lane() { stop(Milliseconds(0)); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Starts the thread when it is not running.
  void wake();
  // The step runs once more, then the thread ends. A call that takes longer than that is interrupted.
  void stop(Milliseconds at_most);
  bool is_stopping() const;
  // Why the server could not be reached the last time; empty: it could, or nobody tried.
  std::string trouble() const;
  // How many sessions this lane has had: whoever told something to a session finds out that it is gone.
  std::uint64_t sessions() const { return sessions_; }

  // For the step only. Connects when there is no session, after the wait that is due between tries. When nothing was done
  // because the connection was gone, it is tried once more on a new one.
  template <class Request>
  auto call(Request request) -> decltype(request(std::declval<Session&>())) {
    return call(request, false);
  }
  // For what gives the same when it is done a second time: it is tried once more also when nobody knows whether it was done.
  template <class Request>
  auto call_repeatable(Request request) -> decltype(request(std::declval<Session&>())) {
    return call(request, true);
  }
  // For what changes nothing, or only the time of a lease: that it may have been done is of no interest to anybody.
  template <class Request>
  auto look(Request request) -> decltype(request(std::declval<Session&>())) {
    auto answer = call(request, true);
    if (!answer && answer.error().code == ErrorCode::kUnconfirmed) {
      return Error{ErrorCode::kUnavailable, answer.error().message};
    }
    return answer;
  }
  // Connects when there is no session.
  Status connect();

 private:
  template <class Request>
  auto call(Request& request, bool is_repeatable) -> decltype(request(std::declval<Session&>())) {
    for (int tries = 0;; ++tries) {
      if (Status up = connect(); !up) return up.error();
      auto answer = request(*session_);
      if (!session_->is_broken()) return answer;
      drop();
      if (answer || tries > 0) return answer;
      const ErrorCode code = answer.error().code;
      if (code != ErrorCode::kUnavailable && !(is_repeatable && code == ErrorCode::kUnconfirmed)) return answer;
    }
  }
  void run();
  void drop();

  JobStore& store_;
  const Step step_;
  std::uint64_t sessions_ = 0;  // Of the thread, like session_ but for interrupt().
  platform::Backoff backoff_;
  Moment not_before_ = {};

  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::unique_ptr<Session> session_;
  std::string trouble_;
  bool woken_ = false;
  bool stopping_ = false;
  bool interrupted_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace bide::brokers::database
