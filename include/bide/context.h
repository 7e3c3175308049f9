// Context: what a handler knows about the attempt it is running, and what it can say besides its outcome.
//
//   worker.handle("import", [](const bide::Job& job, bide::Context& context) -> bide::Outcome {
//     for (auto& row : rows(job.body)) {
//       if (context.stop_token().stop_requested()) return bide::retry_after(0s, "stopped half-way");
//       context.enqueue("index", row);                 // Real only together with the outcome of this job.
//     }
//     context.set_result("1000 rows");
//     return bide::Done{};
//   });
//
// A handler returns nothing, or an Outcome: Done, retry_after, retry_at, dead. Throwing a std::exception is a failure
// with its text; throwing anything else is a failure too. After a failure the job's retry policy decides.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bide/body.h"
#include "bide/coroutine.h"
#include "bide/enqueue_options.h"
#include "bide/kind.h"
#include "bide/lease.h"
#include "bide/request.h"
#include "bide/result.h"

namespace bide {

namespace worker {
class Attempt;
class AttemptRunner;
class CoroutineAttempt;
}  // namespace worker

// Again after a wait chosen by the handler. The attempt counts as failed: when none are left the job is dead.
RetryAt retry_after(Milliseconds wait, std::string why = "the handler asked for a retry");
RetryAt retry_at(Time time, std::string why = "the handler asked for a retry");
// Never again by itself: to the dead set, as rejected, for a human to look at.
Dead dead(std::string why);

// Lives as long as its handler runs. Only stop_token(), deadline(), lease_lost(), cancel_requested(), stopping() and
// keep_alive() may be called from other threads than the handler's.
class Context {
 public:
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Job& job() const { return lease_.job; }
  std::uint32_t attempt() const { return lease_.attempt; }  // Counted from 1.
  const AttemptCounts& counts() const { return lease_.counts; }  // How earlier attempts ended.
  const std::vector<AttemptError>& history() const { return lease_.history; }
  Time due() const { return lease_.due; }

  // When the time limit or the deadline of a request is reached. From then on the attempt is timed out, whatever the handler
  // still does.
  std::chrono::steady_clock::time_point deadline() const;

  // Asked to stop when the time limit is reached, the lease is lost, the job is cancelled, or the worker stops and
  // its grace time nears its end. Callbacks on it run on a thread of the worker: keep them short.
  std::stop_token stop_token() const;
  bool lease_lost() const;         // Another attempt may be running: the outcome will be refused.
  bool cancel_requested() const;   // Somebody cancelled the job.
  bool stopping() const;           // The worker takes no more jobs; this one may still finish.

  // The worker keeps the lease alive by itself. This asks for it now, and says whether it is worth going on.
  bool keep_alive();

  // Effects: they become real together with the outcome, or not at all. Effects of an attempt that fails are dropped,
  // except those of an explicit retry_after, retry_at or dead.
  //
  // kInvalidArgument: the message names the field; nothing was noted.
  Result<JobId> enqueue(std::string_view kind, std::string_view body, const EnqueueOptions& options = {});
  template <TypedBody T>
  Result<JobId> enqueue(std::string_view kind, const T& body, const EnqueueOptions& options = {}) {
    return enqueue(make_typed_job(kind, body, options));
  }
  template <class T>
  Result<JobId> enqueue(const Kind<T>& kind, const std::type_identity_t<T>& body, const ChangeOptions& change = {}) {
    return enqueue(make_typed_job(kind, body, change));
  }
  Result<JobId> enqueue(Job job);

  // Asks another worker, as Client::request does, but not beyond deadline(): whoever waits for this handler does not wait
  // longer. Not an effect: it is sent at once. A worker whose threads all wait for requests to itself answers none of them.
  template <class T = Reply, class Body>
  std::future<Result<T>> request(std::string_view kind, const Body& body, const RequestOptions& options = {}) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    std::future<Result<T>> reply = promise->get_future();
    send_request(make_typed_request(kind, body, options), options.timeout, [promise](Result<Reply> result) {
      promise->set_value(decode_reply<T>(std::move(result)));
    });
    return reply;
  }

  // The same for handlers that are coroutines: co_await gives the Result<T>.
  template <class T = Reply, class Body>
  Awaitable<T> request_awaitable(std::string_view kind, Body&& body) {
    const RequestOptions options;
    return request_awaitable<T>(kind, std::forward<Body>(body), options);
  }
#ifdef BIDE_NO_AGGREGATES_IN_CO_AWAIT
  // Give the options as a variable; see bide/coroutine.h.
  template <class T = Reply, class Body>
  Awaitable<T> request_awaitable(std::string_view kind, Body&& body, RequestOptions&& options) = delete;
#endif
  template <class T = Reply, class Body>
  Awaitable<T> request_awaitable(std::string_view kind, Body&& body, const RequestOptions& options) {
    static_assert(coroutine::kMayBeAwaitedWith<Body>, "give the body as a variable; see bide/coroutine.h");
    return Awaitable<T>([this, job = make_typed_request(kind, body, options), timeout = options.timeout](Completion<T> done) {
      send_request(job, timeout, [done = std::move(done)](Result<Reply> reply) { done(decode_reply<T>(std::move(reply))); });
    });
  }
  // co_await gives false when the handler was asked to stop meanwhile; see stop_token().
  Sleep sleep(Milliseconds time) const { return Sleep(time, stop_token()); }

  // Kept with the job for a while once it is done. At most Limits::kBodyBytes: with more the attempt fails. Without a
  // content type it is kDefaultContentType.
  void set_result(std::string_view result, std::string_view content_type = {});
  template <TypedBody T>
  void set_result(const T& result) {
    require_body_codec<T>();
    if constexpr (HasBodyCodec<T>) set_result(BodyCodec<T>::encode(result), BodyCodec<T>::kContentType);
  }

  // The body of the next attempt, if there is one: a state machine goes on where it stopped. Waits for the broker; when
  // it succeeds the body is durable, whatever becomes of this attempt.
  //
  // kInvalidArgument: longer than Limits::kBodyBytes; nothing was saved. kLeaseLost: another attempt may be running.
  // kUnsupported: this broker (see Capabilities::save_body) writes it with the outcome only, when the handler throws as
  // when it asks for a retry; it is lost when the process dies or the attempt is timed out. So after any other error.
  Status save_body(std::string_view body);

  // Runs f once for the job, however many attempts it takes, and gives what f gave: nothing, bytes, or a type with a BodyCodec.
  // Each step of a job has a name of its own. When it succeeds the result is durable. If the process dies before that, f runs
  // again: it should be harmless to repeat, or find out for itself, for example by an idempotency key made of id and name.
  //
  // kUnsupported: this broker keeps no steps, and f was not run. kLeaseLost: another attempt may be running.
  // kInvalidArgument: the name, or more than Limits::kSteps or kStepBytes. What f throws goes on to the caller.
  template <class F>
  auto step(std::string_view name, F&& f) {
    using Given = std::invoke_result_t<F&>;
    using Value = std::conditional_t<std::is_void_v<Given>, void, std::conditional_t<TypedBody<Given>, Given, std::string>>;
    using Answer = Result<Value>;
    if (const std::string* before = find_step(name)) {
      if constexpr (std::is_void_v<Value>) {
        return Answer();
      } else if constexpr (std::is_same_v<Value, std::string>) {
        return Answer(*before);
      } else {
        return Answer(BodyCodec<Value>::decode(*before));
      }
    }
    if (Status can = can_keep_steps(); !can) return Answer(can.error());
    if constexpr (std::is_void_v<Value>) {
      f();
      return keep_step(name, {});
    } else {
      Value value(f());
      std::string bytes;
      if constexpr (std::is_same_v<Value, std::string>) {
        bytes = value;
      } else {
        static_assert(HasBodyCodec<Value>, "include <bide/json.h>, or specialise bide::BodyCodec for this type");
        bytes = BodyCodec<Value>::encode(value);
      }
      if (Status kept = keep_step(name, std::move(bytes)); !kept) return Answer(kept.error());
      return Answer(std::move(value));
    }
  }

  // How far the attempt is, from 0 to 1, and in words: shown with the job while it runs. Not confirmed, and cheap.
  void progress(double part, std::string_view note = {});

  // What a job came to, while that is kept: one that this one waited for (Job::after), by its id, or by its kind where only one
  // has it. It asks the broker, and waits.
  //
  // kNotFound: there is no such job, or it is forgotten. kWrongState: it is not done.
  Result<std::string> result_of(JobId id) const;
  Result<std::string> result_of(std::string_view kind) const;
  template <TypedBody T, class Which>
  Result<T> result_of(const Which& which) const {
    static_assert(HasBodyCodec<T>, "include <bide/json.h>, or specialise bide::BodyCodec for this type");
    auto result = result_of(which);
    if (!result) return result.error();
    return BodyCodec<T>::decode(*result);
  }

  // What the attempt is settled with when its handler returns this outcome now: for a handler that settles it in a transaction
  // of its own, by <bide/postgres.h> or <bide/mysql.h>. Then the worker finds it settled.
  Settlement settlement(Outcome outcome = Done{}) const;
  template <TypedBody T>
  Status save_body(const T& body) {
    require_body_codec<T>();
    if constexpr (HasBodyCodec<T>) return save_body(std::string_view(BodyCodec<T>::encode(body)));
  }

 private:
  friend class worker::AttemptRunner;
  friend class worker::CoroutineAttempt;
  Context(const Lease& lease, worker::Attempt& attempt) : lease_(lease), attempt_(attempt) {}
  const std::string* find_step(std::string_view name) const;  // Null: it has not been done.
  Status can_keep_steps() const;
  Status keep_step(std::string_view name, std::string result);
  void send_request(Job job, Milliseconds timeout, std::function<void(Result<Reply>)> done);

  const Lease& lease_;
  worker::Attempt& attempt_;
  std::vector<Job> effects_ = {};
  std::string result_ = {};
  std::string result_content_type_ = {};
  std::optional<std::string> saved_body_ = {};
  std::vector<Step> steps_ = {};  // Of this attempt.
};

}  // namespace bide
