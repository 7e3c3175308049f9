// Flow: jobs that wait for one another, enqueued together and shown, cancelled and replayed together.
//
//   bide::Flow flow;
//   const bide::JobId fetch = flow.add("fetch", url);
//   const bide::JobId small = flow.add("encode", "480p", {.after = {fetch}});
//   const bide::JobId large = flow.add("encode", "1080p", {.after = {fetch}});
//   flow.add("publish", url, {.after = {small, large}});
//   auto started = flow.start(client);  // Durable when it returns; `bide flow show ID` draws it.
//
// A handler reads what those before it came to with Context::result_of(), and adds to its own flow with
// context.enqueue(kind, body, {.flow = context.job().flow}). docs/flows.md has the rules.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "bide/enqueue_options.h"

namespace bide {

class Flow {
 public:
  Flow();                                     // A new one.
  explicit Flow(JobId id) : id_(id) {}        // More jobs for one that is there.

  JobId id() const { return id_; }

  // The id that the job will have, for others to wait for.
  JobId add(std::string_view kind, std::string_view body = {}, const EnqueueOptions& options = {});
  template <TypedBody T>
  JobId add(std::string_view kind, const T& body, const EnqueueOptions& options = {}) {
    static_assert(HasBodyCodec<T>, "include <bide/json.h>, or specialise bide::BodyCodec for this type");
    Job job = make_job(kind, BodyCodec<T>::encode(body), options);
    if (options.content_type.empty()) job.content_type = BodyCodec<T>::kContentType;
    return add(std::move(job));
  }
  JobId add(Job job);

  // A job that was added waits for these too. kNotFound: it was not added here, or start() has taken it.
  Status after(JobId job, const std::vector<JobId>& others);

  const std::vector<Job>& jobs() const { return jobs_; }

  // Enqueues what was added since the last start, and gives the id of the flow. A job that is not valid is found out before any is
  // enqueued.
  //
  // Otherwise as Client::enqueue, with the first error: a job may be refused for its unique key, and with it those that wait for
  // it, while others are accepted. Starting again is harmless: every job has its id.
  Result<JobId> start(Client& client);

 private:
  JobId id_;
  std::vector<Job> jobs_;
};

}  // namespace bide
