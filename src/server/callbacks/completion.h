// Completion: what is enqueued when a job with such a wish is done or dead.
//
//   bide-on-done: URL        a job of kind bide.on_done in the queue of the callbacks, which is delivered to the URL:
//                            {"id":...,"kind":...,"queue":...,"state":"done","attempts":1,"result":...}
//                            {"id":...,"kind":...,"queue":...,"state":"dead","attempts":3,"reason":...,"error":...}
//   bide-reply-queue: name   a job of kind <kind>.result in that queue, with the result as its body, and the headers
//                            bide-origin-id, -kind, -queue, -state, when dead also bide-origin-error
//
// Both become real together with the settlement, as effects of it: neither can be lost, nor come for a job that is not
// finished. Where the broker cannot do both in one step they may come twice, with the same id.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/lease.h"

namespace bide::server {

inline constexpr std::string_view kOnDoneKind = "bide.on_done";
inline constexpr std::string_view kReplyKindSuffix = ".result";
inline constexpr std::size_t kMostToldResult = 64 * 1024;  // A longer result is left out: "result_bytes" says so.

// What of a job is needed to tell of its end.
struct CompletionWish {
  JobId id = {};
  std::string kind = {};
  std::string queue = {};
  std::string on_done = {};
  std::string reply_queue = {};
  std::string traceparent = {};
  std::uint32_t attempts = 0;

  bool empty() const { return on_done.empty() && reply_queue.empty(); }
};

CompletionWish wish_of(const Job& job, std::uint32_t attempts);

// With the jobs that tell of the end added to its effects, when the outcome is an end and there is a wish.
// `callback_queue` is where deliveries are taken from.
Settlement with_completion(Settlement settlement, const CompletionWish& wish, const std::string& callback_queue);
Settlement with_completion(Settlement settlement, const Lease& lease, const std::string& callback_queue);

// The same jobs for one that was found done or dead. Brokers forget the headers of a job that is done, so the wish was
// taken before. `mark` tells one end of a job from another: it is part of the ids.
std::vector<Job> completion_jobs(const JobInfo& info, CompletionWish wish, const std::string& callback_queue,
                                 std::string_view mark);

}  // namespace bide::server
