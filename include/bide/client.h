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
//   }
//
// A client is a cheap handle: copies share one connection, or one store, which closes with the last of them. Every
// method is safe to call from any thread.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/body.h"
#include "bide/broker.h"
#include "bide/enqueue_options.h"
#include "bide/inspector.h"
#include "bide/result.h"

namespace bide {

class Client {
 public:
  // Opens the broker that the URL names; settings follow as name=value, joined by &:
  //
  //   bide:./data?durability=os      the embedded engine; the directory is made when it is not there
  //   http://127.0.0.1:7070          a bide server (docs/remote.md); amqp:// is RabbitMQ (docs/rabbitmq.md)
  //
  // kInvalidArgument: the URL or a setting is wrong. kUnsupported: a broker that is not built in.
  // kBusy: another process owns the directory and does not answer. kPermissionDenied, kCannotCreate, kDamaged, kNewerVersion, kIoError.
  static Result<Client> open(std::string_view url);

  // On a broker of your own. The inspector may be missing; inspector() must then not be called.
  explicit Client(std::shared_ptr<Broker> broker, std::shared_ptr<Inspector> inspector = nullptr);

  // On success the job is durable and will run at least once.
  //
  // kInvalidArgument: the message names the field; or the client is closed. kAlreadyExists: a live job holds the same
  // unique_key; nothing was written. kOverloaded, kDiskFull, kUnavailable: nothing was written.
  // kUnconfirmed: the job may exist. Call again with the same id or unique_key, or where running twice is harmless.
  Result<JobId> enqueue(std::string_view kind, std::string_view body, const EnqueueOptions& options = {});

  // The same with a body of a type of yours; see bide/body.h and bide/json.h.
  template <TypedBody T>
  Result<JobId> enqueue(std::string_view kind, const T& body, const EnqueueOptions& options = {}) {
    static_assert(HasBodyCodec<T>, "include <bide/json.h>, or specialise bide::BodyCodec for this type");
    return enqueue_job(typed_job(kind, body, options));
  }

  // One result for each job, in order; they succeed and fail one by one.
  std::vector<Result<JobId>> enqueue(std::vector<Job> jobs);

  // Returns at once. The completion runs on a thread of the broker: it must not block, nor call a blocking method of
  // the client.
  void enqueue_async(std::string_view kind, std::string_view body, const EnqueueOptions& options,
                     Completion<JobId> done);
  void enqueue_async(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done);

  // kNotFound: there is no such job, or it is done and forgotten.
  Result<JobInfo> find(JobId id) const;

  // Waits until the job is done or dead. kUnavailable: it was neither in time. kNotFound: also when it is removed.
  Result<JobInfo> wait_for(JobId id, Milliseconds timeout) const;

  // What the broker itself offers: asynchronous, in batches. Valid while any copy of the client is open.
  Broker& broker() const;
  Inspector& inspector() const;

  // Closes every copy. Calls under way come to their end; later ones answer kInvalidArgument; a second close does
  // nothing. Stop the workers of this client first.
  void close();

 private:
  friend class Worker;
  struct State;

  template <class T>
  static Job typed_job(std::string_view kind, const T& body, const EnqueueOptions& options) {
    Job job = make_job(kind, BodyCodec<T>::encode(body), options);
    if (options.content_type.empty()) job.content_type = BodyCodec<T>::kContentType;
    return job;
  }
  Result<JobId> enqueue_job(Job job);
  std::shared_ptr<Broker> shared_broker() const;  // Null once closed.

  std::shared_ptr<State> state_;
};

}  // namespace bide
