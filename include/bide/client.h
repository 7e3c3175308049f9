// Client: hands jobs to a broker, and asks about them afterwards.
//
//   #include <bide/bide.h>
//   using namespace std::chrono_literals;
//
//   int main() {
//     auto client = bide::Client::open("bide:./data");
//     if (!client) {
//       std::cerr << client.error().message << '\n';
//       return 1;
//     }
//
//     // Durable when it returns: from here on the job runs at least once, whatever happens to this process.
//     auto id = client->enqueue("send_email", "ann@example.org", {
//         .queue = "mail",
//         .delay = 10min,
//         .retry = bide::RetryPolicy::steps({10s, 100s, 1h}),
//         .unique_key = "welcome:ann",
//     });
//     if (!id && id.error().code == bide::ErrorCode::kAlreadyExists) return 0;  // Somebody was faster: just as well.
//
//     // Many at once cost little more than one.
//     for (const auto& each : client->enqueue(std::vector<bide::Job>{{.kind = "a"}, {.kind = "b"}})) {
//       if (!each) std::cerr << each.error().message << '\n';
//     }
//
//     auto finished = client->wait_for(*id, 30s);  // What became of it, and its result.
//     auto reply = client->request("render", "<p>", {.timeout = 2s}).get();  // Or ask, and get a reply.
//   }
//
// A client is a cheap handle: copies share one connection, or one store, which closes with the last of them. Every
// method is safe to call from any thread.

#pragma once

#include <functional>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bide/body.h"
#include "bide/broker.h"
#include "bide/coroutine.h"
#include "bide/enqueue_options.h"
#include "bide/inspector.h"
#include "bide/kind.h"
#include "bide/pressure.h"
#include "bide/request.h"
#include "bide/result.h"

namespace bide {

namespace rpc {
class Requester;
}
namespace client {
class PressureGate;
}

struct ClientOptions {
  PressurePolicy pressure = {};            // Of what is enqueued and published without one of its own.
  bool metrics = false;                    // What goes through is counted, for metrics_text() (bide/metrics.h).
  std::shared_ptr<Broker> outbox = {};     // Where PressurePolicy::spill() leads. open() knows it from the URL.
};

class Client {
 public:
  // Opens the broker that the URL names; settings follow as name=value, joined by &:
  //
  //   bide:./data?durability=os      the embedded engine; the directory is made when it is not there
  //   http://127.0.0.1:7070          a bide server (docs/remote.md); amqp:// is RabbitMQ (docs/rabbitmq.md)
  //
  // kInvalidArgument: the URL or a setting is wrong. kUnsupported: a broker that is not built in.
  // kBusy: another process owns the directory and does not answer. kPermissionDenied, kCannotCreate, kDamaged, kNewerVersion, kIoError.
  static Result<Client> open(std::string_view url, ClientOptions options = {});

  // On a broker of your own. The inspector may be missing; inspector() must then not be called.
  explicit Client(std::shared_ptr<Broker> broker, std::shared_ptr<Inspector> inspector = nullptr, ClientOptions options = {});

  // On success the job is durable and will run at least once.
  //
  // kInvalidArgument: the message names the field; or the client is closed. kAlreadyExists: a live job holds the same
  // unique_key; nothing was written. kOverloaded (see bide/pressure.h), kDiskFull, kUnavailable: nothing was written.
  // kUnconfirmed: the job may exist. Call again with the same id or unique_key, or where running twice is harmless.
  Result<JobId> enqueue(std::string_view kind, std::string_view body, const EnqueueOptions& options = {});

  // The same with a body of a type of yours; see bide/body.h and bide/json.h.
  template <TypedBody T>
  Result<JobId> enqueue(std::string_view kind, const T& body, const EnqueueOptions& options = {}) {
    return enqueue_job(make_typed_job(kind, body, options), options.pressure);
  }
  // Of a kind that was declared (bide/kind.h), with its options but for what `change` changes.
  template <class T>
  Result<JobId> enqueue(const Kind<T>& kind, const std::type_identity_t<T>& body, const ChangeOptions& change = {}) {
    return enqueue_job(make_typed_job(kind, body, change), kind.options.pressure);
  }

  // One result for each job, in order; they succeed and fail one by one.
  std::vector<Result<JobId>> enqueue(std::vector<Job> jobs);
  template <class T>
  std::vector<Result<JobId>> enqueue_all(std::string_view kind, const std::vector<T>& bodies, const EnqueueOptions& options = {}) {
    std::vector<Job> jobs;
    for (const T& body : bodies) jobs.push_back(make_typed_job(kind, body, options));
    return enqueue(std::move(jobs));
  }
  template <class T>
  std::vector<Result<JobId>> enqueue_all(const Kind<T>& kind, const std::type_identity_t<std::vector<T>>& bodies) {
    return enqueue_all(kind.name, bodies, kind.options);
  }

  // From now on called with every job and event before this client and its copies hand it to the broker, in the order in which
  // they were added: to add headers, choose a queue, or refuse it with an error, which is what the enqueue then answers. On
  // the thread that enqueues. Not for requests, and not for the effects of handlers, which are part of their outcome.
  using EnqueueHook = std::function<Status(Job&)>;
  void use(EnqueueHook hook);

  // Returns at once. The completion runs on a thread of the broker: it must not block, nor call a blocking method of
  // the client.
  void enqueue_async(std::string_view kind, std::string_view body, const EnqueueOptions& options,
                     Completion<JobId> done);
  void enqueue_async(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done);

  // For coroutines (bide/coroutine.h): co_await gives the Result<JobId>.
  template <class Body>
  Awaitable<JobId> enqueue_awaitable(std::string_view kind, Body&& body) {
    const EnqueueOptions options;
    return enqueue_awaitable(kind, std::forward<Body>(body), options);
  }
  template <class Body>
  Awaitable<JobId> enqueue_awaitable(std::string_view kind, Body&& body, const EnqueueOptions& options) {
    static_assert(coroutine::kMayBeAwaitedWith<Body>, "give the body as a variable; see bide/coroutine.h");
    using T = std::remove_cvref_t<Body>;
    if constexpr (TypedBody<T>) {
      return job_awaitable(make_typed_job<T>(kind, body, options), options.pressure);
    } else {
      return job_awaitable(make_job(kind, std::string(std::string_view(body)), options), options.pressure);
    }
  }
#ifdef BIDE_NO_AGGREGATES_IN_CO_AWAIT
  // Give the options as a variable; see bide/coroutine.h.
  template <class Body>
  Awaitable<JobId> enqueue_awaitable(std::string_view kind, Body&& body, EnqueueOptions&& options) = delete;
#endif

  // Gives an event to every group that is bound to its topic, all of them or none; see bide/events.h. Options as for a
  // job, but queue and unique_key: those would be mistakes.
  Result<Published> publish(std::string_view topic, std::string_view body, const EnqueueOptions& options = {});
  template <TypedBody T>
  Result<Published> publish(std::string_view topic, const T& body, const EnqueueOptions& options = {}) {
    return publish_job(make_typed_job(topic, body, options), options.pressure);
  }

  // Asks a worker and waits for its reply; see bide/request.h. T is Reply, std::string, void or a type with a BodyCodec. The
  // future is always answered.
  //
  // kHandlerFailed: with the handler's words. kTimedOut: no reply in time. kInvalidArgument: the message names the field, or
  // the reply is no T. kUnsupported: this broker carries no replies. Otherwise as enqueue.
  template <class T = Reply, class Body>
  std::future<Result<T>> request(std::string_view kind, const Body& body, const RequestOptions& options = {}) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    std::future<Result<T>> reply = promise->get_future();
    request_async<T>(kind, body, options, [promise](Result<T> result) { promise->set_value(std::move(result)); });
    return reply;
  }
  // The completion runs on a thread of the broker or of the client: it must not block.
  template <class T = Reply, class Body>
  void request_async(std::string_view kind, const Body& body, const RequestOptions& options,
                     std::type_identity_t<Completion<T>> done) {
    send_request(make_typed_request(kind, body, options), options.timeout,
                 [done = std::move(done)](Result<Reply> reply) { done(decode_reply<T>(std::move(reply))); });
  }
  // For coroutines: co_await gives the Result<T>.
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
    return Awaitable<T>([client = *this, job = make_typed_request(kind, body, options),
                         timeout = options.timeout](Completion<T> done) mutable {
      client.send_request(std::move(job), timeout,
                          [done = std::move(done)](Result<Reply> reply) { done(decode_reply<T>(std::move(reply))); });
    });
  }
  RequestStats request_stats() const;

  // kNotFound: there is no such job, or it is done and forgotten.
  Result<JobInfo> find(JobId id) const;

  // Waits until the job is done or dead. kUnavailable: it was neither in time. kNotFound: also when it is removed.
  Result<JobInfo> wait_for(JobId id, Milliseconds timeout) const;
  // The result itself, as a type with a BodyCodec, or as std::string. kHandlerFailed: the job is dead, with its newest error.
  // kInvalidArgument: its result is no T.
  template <class T>
  Result<T> wait_for(JobId id, Milliseconds timeout) const {
    return decode_reply<T>(wait_for_result(id, timeout));
  }

  // What people do with jobs, and wait for. The errors are those of Inspector, and kUnsupported where there is none.
  Status cancel(JobId id) const;
  Status reschedule(JobId id, Time due) const;
  Status replay(JobId id, const ReplayOptions& options = {}) const;
  // One for each, in order.
  Result<std::vector<Status>> cancel(std::vector<JobId> ids) const;
  Result<std::vector<Status>> replay(std::vector<JobId> ids, const ReplayOptions& options = {}) const;
  Result<std::vector<QueueInfo>> queues() const;
  Status pause(std::string queue, bool paused = true) const;
  Result<Explanation> explain(JobId id) const;

  // Makes a job at each of its due times. Equal to what is there: nothing happens, so programs put theirs at every start.
  //
  // kInvalidArgument: the message names the field. kAlreadyExists: the name belongs to another owner's schedule.
  // kUnsupported: this broker has no schedules.
  Result<PutSchedule> put_schedule(Schedule schedule) const;
  Result<std::vector<ScheduleInfo>> schedules() const;
  // kNotFound: there is no such schedule; likewise below. Jobs that it has made stay.
  Status remove_schedule(std::string name) const;
  Status pause_schedule(std::string name) const;
  Status resume_schedule(std::string name) const;
  // A job of it now, beside its occurrences.
  Result<JobId> run_schedule(std::string name) const;

  // From now on the queue has these rules (bide/queue_rules.h), whatever it had before; default ones remove them. The errors
  // are those of put_schedule().
  Status put_rules(QueueRules rules) const;

  // What the broker wants now: kBlocked and kUnreachable once the client is closed.
  Pressure pressure() const;
  // Calls `changed` when the level is another one, at first when it is not kOk, within a tenth of a second and on a thread of
  // the client. It must not block, may use the client, and may end the watch. Not after close().
  PressureWatch on_pressure(std::function<void(const Pressure&)> changed);

  // What the broker itself offers: asynchronous, in batches. Valid while any copy of the client is open.
  Broker& broker() const;
  Inspector& inspector() const;

  // Closes every copy. Calls under way come to their end; later ones answer kInvalidArgument; a second close does
  // nothing. Stop the workers of this client first.
  void close();

 private:
  friend class Worker;
  struct State;

  using Policy = std::optional<PressurePolicy>;
  Result<JobId> enqueue_job(Job job, const Policy& pressure);
  Result<Published> publish_job(Job event, const Policy& pressure);
  Awaitable<JobId> job_awaitable(Job job, const Policy& pressure);
  void enqueue_under(const Policy& pressure, std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done);
  std::shared_ptr<client::PressureGate> gate() const;  // Null once closed.
  void send_request(Job job, Milliseconds timeout, Completion<Reply> done);
  std::shared_ptr<rpc::Requester> requester() const;  // Null once closed.
  std::shared_ptr<Broker> shared_broker() const;  // Null once closed.
  // find(), which does not keep the client open.
  std::function<Result<JobInfo>(JobId)> finder() const;
  Result<std::shared_ptr<Inspector>> shared_inspector() const;
  Result<Reply> wait_for_result(JobId id, Milliseconds timeout) const;
  // What hooks make of them; an error for each that they refuse, which is then left out.
  std::vector<std::optional<Error>> run_hooks(std::vector<Job>& jobs) const;

  std::shared_ptr<State> state_;
};

}  // namespace bide
