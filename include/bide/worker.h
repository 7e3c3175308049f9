// Worker: takes leases from a broker, runs handlers, settles what they came to.
//
//   #include <bide/bide.h>
//   #include <bide/json.h>
//   using namespace std::chrono_literals;
//
//   struct Resize { std::string file; int width; };
//   NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file, width)
//
//   int main() {
//     auto client = bide::Client::open("bide:./data").value();
//
//     bide::Worker worker(client, {.queues = {{"images", 3}, "mail"}, .concurrency = 8});
//
//     worker.handle<Resize>("resize", [](const Resize& job, bide::Context& context) {
//       shrink(job.file, job.width, context.stop_token());     // throw: retry. return: done.
//       context.enqueue("notify", job.file, {.delay = 10s}).value();
//     });
//     worker.handle("notify", [](const bide::Job& job) -> bide::Outcome {
//       if (!valid(job.body)) return bide::dead("no such address");
//       if (!server_up()) return bide::retry_after(30s, "mail server is down");
//       return bide::Done{};
//     });
//
//     return worker.run();  // Until SIGTERM or SIGINT; then finishes or returns what it holds.
//   }
//
// Leases are short, and one thread keeps all of them alive: a worker that dies is noticed within `lease`, however long
// its handlers may run. The time limit of a job is separate: a handler past it is told to stop, its attempt is settled
// as timed out and its late outcome is dropped. C++ cannot end a thread, so the thread is replaced; when
// `abandoned_threads` handlers have not come back the worker takes no more jobs until one does, and says so.
//
// Handlers that are coroutines give their thread back while they wait, so that thousands of them need a few threads; their
// time limits, their stop and what they come to are those of any other.
//
// Outcomes are settled in batches; a handler's thread is free as soon as the handler returns. A kind without a handler is not
// taken; where the broker hands it out all the same (Capabilities::kinds), it is given back uncharged, and reported once.

#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bide/body.h"
#include "bide/client.h"
#include "bide/context.h"
#include "bide/coroutine.h"
#include "bide/middleware.h"

namespace bide {

namespace testing {
class Kit;
}
namespace worker {
struct WorkerState;
}

// A queue to take from. Jobs are taken from several in proportion to their weights.
struct WorkerQueue {
  WorkerQueue(const char* queue_name, int queue_weight = 1) : name(queue_name), weight(queue_weight) {}
  WorkerQueue(std::string queue_name, int queue_weight = 1) : name(std::move(queue_name)), weight(queue_weight) {}

  std::string name;
  int weight;
};

struct WorkerOptions {
  std::vector<WorkerQueue> queues = {"default"};
  int concurrency = 0;  // Handlers at once, each on a thread of its own. 0: one for each core.
  // Jobs held at most: running, waiting for a thread, and not yet confirmed. 0: as many as the handlers go through in
  // a moment, so that short ones are fetched ahead and long ones are left to other workers.
  // With coroutines among the handlers it is how many of them may be under way, on the threads of `concurrency`; 0: 1000.
  int credit = 0;
  Milliseconds lease{15'000};              // From 1 s.
  Milliseconds grace{25'000};              // From the signal to the end of run().
  int abandoned_threads = 8;               // See above.
  Milliseconds unknown_kind_wait{10'000};  // How long a job of an unknown kind is left alone.
  std::string name = {};                   // Shown by explain. Empty: host and process id.
};

// What an attempt came to, for hooks.
struct Finished {
  const Job& job;
  std::uint32_t attempt;
  const Outcome& outcome;
  std::chrono::nanoseconds took;
};

struct WorkerStats {
  std::uint64_t started = 0;          // Attempts begun.
  std::uint64_t done = 0;             // Confirmed by the broker, as the next three.
  std::uint64_t retried = 0;
  std::uint64_t dead = 0;
  std::uint64_t returned = 0;
  std::uint64_t timed_out = 0;        // Handlers past their limit.
  std::uint64_t lease_lost = 0;       // Outcomes refused, or given up, because the lease was gone.
  std::uint64_t settle_retries = 0;   // Outcomes sent again because the broker did not confirm.
  int running = 0;                    // Coroutines that wait are among them.
  int waiting = 0;                    // Leased, not started.
  int abandoned = 0;                  // Threads whose handlers have not come back.
};

// Set up by one thread, before start() or run(). stop(), stats() and the destructor may come from any.
class Worker {
 public:
  explicit Worker(Client client, WorkerOptions options = {});
  ~Worker();  // Stops, if it is running.
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // A handler may take (const Job&, Context&), (const Job&), (body, Context&), (body) with the body as std::string_view
  // or const std::string&, (Context&) or nothing; it returns void, Outcome, or one of Outcome's members. It is called
  // from several threads at once. Two handlers for one kind are a mistake that start() reports. The kind `*` stands for
  // every kind that has no handler of its own; `order.*` and `order.#` for those that match it as the topic of an event
  // (bide/events.h), the first that was added.
  //
  // A handler that returns a Task of what it would return otherwise is a coroutine (bide/coroutine.h): it holds a thread only
  // while it does something. What it is given lives until it ends, its captures too.
  template <class F>
  void handle(std::string kind, F handler) {
    add<Returns::kOutcome>(std::move(kind), std::move(handler));
  }

  // A handler that takes (const Body&, Context&) or (const Body&). A job whose body cannot be decoded is dead, with the
  // decoder's words: trying again would not help.
  template <class Body, class F>
  void handle(std::string kind, F handler) {
    add_decoding<Body, Returns::kOutcome>(std::move(kind), std::move(handler));
  }

  // Of a kind that was declared (bide/kind.h). The worker takes from its queue too, if it is not among its queues.
  template <class Body, class F>
  void handle(const Kind<Body>& kind, F handler) {
    add_queue(kind.options.queue);
    if constexpr (TypedBody<Body>) {
      handle<Body>(kind.name, std::move(handler));
    } else {
      handle(kind.name, std::move(handler));
    }
  }

  // A handler that answers requests: what it returns is the reply, as bytes (std::string, std::string_view, const char*), as
  // a Reply, or as a type with a BodyCodec; void is an empty one. It takes what a handler takes. An exception is a failure,
  // which arrives as kHandlerFailed with its text; a handler that wants to say more returns an Outcome, as with handle().
  template <class F>
  void reply(std::string kind, F handler) {
    add<Returns::kReply>(std::move(kind), std::move(handler));
  }
  template <class Body, class F>
  void reply(std::string kind, F handler) {
    add_decoding<Body, Returns::kReply>(std::move(kind), std::move(handler));
  }

  // With coroutines among the handlers, a middleware that is none for them is a mistake that start() reports.
  void use(Middleware middleware, TaskMiddleware for_coroutines = {});

  // Hooks run on the worker's threads, beside one another, before the broker has confirmed; they must not throw.
  void on_outcome(std::function<void(const Finished&)> hook);
  void on_dead(std::function<void(const Finished&)> hook);  // Only deaths that this worker decided.
  // What a human should know: unknown kinds, abandoned threads, a broker that does not answer. Without a hook the line
  // goes to stderr.
  void on_problem(std::function<void(std::string_view line)> hook);

  // Works until SIGTERM or SIGINT, or until another thread calls stop(). Then, in three phases: takes no more, lets
  // handlers finish within the grace time, returns the rest without charging an attempt. A second signal cuts the
  // grace time short. 0 after an orderly stop. When it could not start, or the broker refuses it later (a token that is
  // revoked), it stops by itself, the reason goes to on_problem and the exit code is one of sysexits: 69 for the
  // broker, 77 when it said no, 78 for a mistake in the setup.
  int run();

  // The same in the background, for programs with a main loop of their own.
  //
  // kInvalidArgument: a mistake in the options or handlers. Otherwise what the broker says.
  Status start();
  // Returns when everything is settled or returned, at the latest after the grace time.
  void stop();
  // Makes a stop that is under way, or the next one, cut the grace time short. Safe from any thread.
  void hurry();

  WorkerStats stats() const;

 private:
  friend class testing::Kit;

  template <class>
  static constexpr bool kNever = false;

  // What a handler returns: an outcome, or a reply.
  enum class Returns { kOutcome, kReply };

  // The handler with as much as it takes.
  template <class F>
  static decltype(auto) invoke(F& handler, const Job& job, Context& context) {
    const std::string& body = job.body;
    if constexpr (std::is_invocable_v<F&, const Job&, Context&>) return handler(job, context);
    else if constexpr (std::is_invocable_v<F&, const std::string&, Context&>) return handler(body, context);
    else if constexpr (std::is_invocable_v<F&, const Job&>) return handler(job);
    else if constexpr (std::is_invocable_v<F&, const std::string&>) return handler(body);
    else if constexpr (std::is_invocable_v<F&, Context&>) return handler(context);
    else if constexpr (std::is_invocable_v<F&>) return handler();
    else static_assert(kNever<F>, "a handler takes (const bide::Job&, bide::Context&), (std::string_view body, bide::Context&), or "
                                  "less; one that takes a type of yours is added with handle<Type>(kind, handler)");
  }
  template <class Body, class F>
  static decltype(auto) invoke_decoded(F& handler, const Body& body, Context& context) {
    if constexpr (std::is_invocable_v<F&, const Body&, Context&>) return handler(body, context);
    else if constexpr (std::is_invocable_v<F&, const Body&>) return handler(body);
    else static_assert(kNever<F>, "a handler of handle<Type>(kind, handler) takes (const Type&, bide::Context&) or (const Type&)");
  }

  template <Returns kReturns, class Value>
  static Outcome outcome_of(Value&& given) {
    using V = std::decay_t<Value>;
    if constexpr (std::is_constructible_v<Outcome, V>) {
      return Outcome(std::forward<Value>(given));
    } else if constexpr (kReturns == Returns::kOutcome) {
      static_assert(kNever<V>, "a handler returns nothing or an outcome (bide::Done{}, bide::retry_after(...), bide::dead(...), "
                               "bide::Outcome): give a result with context.set_result(...), or a reply with worker.reply(...)");
    } else if constexpr (std::is_same_v<V, Reply>) {
      Reply reply = std::forward<Value>(given);
      return Done{.result = std::move(reply.body), .content_type = std::move(reply.content_type)};
    } else if constexpr (!TypedBody<V>) {
      return Done{.result = std::string(std::string_view(given)), .content_type = {}};
    } else {
      require_body_codec<V>();
      if constexpr (HasBodyCodec<V>) {
        return Done{.result = BodyCodec<V>::encode(given), .content_type = std::string(BodyCodec<V>::kContentType)};
      }
    }
  }
  template <Returns kReturns, class Call>
  static Outcome outcome_of_call(Call call) {
    if constexpr (std::is_void_v<std::invoke_result_t<Call&>>) {
      call();
      return Done{.result = {}, .content_type = {}};
    } else {
      return outcome_of<kReturns>(call());
    }
  }
  template <Returns kReturns, class Value>
  static Task<Outcome> outcome_of_task(Task<Value> task) {
    if constexpr (std::is_void_v<Value>) {
      co_await std::move(task);
      co_return Done{.result = {}, .content_type = {}};
    } else {
      Value value = co_await std::move(task);
      co_return outcome_of<kReturns>(std::move(value));
    }
  }

  template <class Body>
  static std::optional<Dead> decode(const Job& job, std::optional<Body>& body) {
    try {
      body.emplace(BodyCodec<Body>::decode(job.body));
      return std::nullopt;
    } catch (const std::exception& error) {
      return dead("the body cannot be decoded: " + std::string(error.what()));
    }
  }
  template <class Body, Returns kReturns, class F>
  static Task<Outcome> decode_and_await(F& handler, Context& context) {
    std::optional<Body> body;
    if (std::optional<Dead> unreadable = decode(context.job(), body)) co_return std::move(*unreadable);
    co_return co_await outcome_of_task<kReturns>(invoke_decoded<Body>(handler, *body, context));
  }

  template <Returns kReturns, class F>
  void add(std::string kind, F handler) {
    using Value = std::decay_t<decltype(invoke(handler, std::declval<const Job&>(), std::declval<Context&>()))>;
    if constexpr (kIsTask<Value>) {
      add_task_handler(std::move(kind), [handler = std::move(handler)](Context& context) mutable -> Task<Outcome> {
        return outcome_of_task<kReturns>(invoke(handler, context.job(), context));
      });
    } else {
      add_handler(std::move(kind), [handler = std::move(handler)](Context& context) mutable -> Outcome {
        return outcome_of_call<kReturns>([&]() -> decltype(auto) { return invoke(handler, context.job(), context); });
      });
    }
  }
  template <class Body, Returns kReturns, class F>
  void add_decoding(std::string kind, F handler) {
    require_body_codec<Body>();
    if constexpr (HasBodyCodec<Body>) add_decoder<Body, kReturns>(std::move(kind), std::move(handler));
  }
  template <class Body, Returns kReturns, class F>
  void add_decoder(std::string kind, F handler) {
    using Value = std::decay_t<decltype(invoke_decoded<Body>(handler, std::declval<const Body&>(), std::declval<Context&>()))>;
    if constexpr (kIsTask<Value>) {
      add_task_handler(std::move(kind), [handler = std::move(handler)](Context& context) mutable -> Task<Outcome> {
        return decode_and_await<Body, kReturns>(handler, context);
      });
    } else {
      add_handler(std::move(kind), [handler = std::move(handler)](Context& context) mutable -> Outcome {
        std::optional<Body> body;
        if (std::optional<Dead> unreadable = decode(context.job(), body)) return std::move(*unreadable);
        return outcome_of_call<kReturns>([&]() -> decltype(auto) { return invoke_decoded<Body>(handler, *body, context); });
      });
    }
  }

  void add_handler(std::string kind, Handler handler);
  void add_task_handler(std::string kind, TaskHandler handler);
  void add_queue(const std::string& name);

  std::unique_ptr<worker::WorkerState> state_;
};

}  // namespace bide
