// Completion: the jobs that tell of the end of another one, whoever ended it. A job asks for them by its headers:
//
//   bide-on-done: URL        a job of kind bide.on_done in the queue of the callbacks, which the server delivers to the
//                            URL; bide-on-done-queue names that queue when it is not "callbacks"
//   bide-reply-queue: name   a job of kind <kind>.result in that queue, with the result as its body
//
// Both carry bide-origin-id, -kind, -queue and -state (done or dead). Of a dead job, bide.on_done has the error as its
// body, bide-origin-reason and -attempts; the reply has no body, and the error in bide-origin-error.
//
// A broker that can makes them itself, in the step that ends the job (Capabilities::completions). So they carry what
// happened as it is; the JSON that a receiver gets is made when it is delivered.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/lease.h"

namespace bide::core {

inline constexpr std::string_view kCallbackHeader = "bide-callback";
inline constexpr std::string_view kOnDoneHeader = "bide-on-done";
inline constexpr std::string_view kOnDoneQueueHeader = "bide-on-done-queue";
inline constexpr std::string_view kReplyQueueHeader = "bide-reply-queue";

inline constexpr std::string_view kOriginIdHeader = "bide-origin-id";
inline constexpr std::string_view kOriginKindHeader = "bide-origin-kind";
inline constexpr std::string_view kOriginQueueHeader = "bide-origin-queue";
inline constexpr std::string_view kOriginStateHeader = "bide-origin-state";
inline constexpr std::string_view kOriginAttemptsHeader = "bide-origin-attempts";
inline constexpr std::string_view kOriginReasonHeader = "bide-origin-reason";
inline constexpr std::string_view kOriginErrorHeader = "bide-origin-error";
inline constexpr std::string_view kOriginResultBytesHeader = "bide-origin-result-bytes";

inline constexpr std::string_view kOnDoneKind = "bide.on_done";
inline constexpr std::string_view kReplyKindSuffix = ".result";
inline constexpr std::string_view kUsualCallbackQueue = "callbacks";
inline constexpr std::size_t kMostToldResult = 64 * 1024;  // A longer result is left out of bide.on_done.

// The value of the first header of this name; empty when there is none.
std::string_view header_of(const Job& job, std::string_view name);

bool wants_completion(const Job& job);

// Nothing when the outcome is no end, or nothing is asked for. Only the id, names and headers of `job` are looked at. The
// jobs have no ids. What cannot be made, because a header says something impossible, is left out: it must not stand in
// the way of the outcome.
std::vector<Job> completion_jobs(const Job& job, std::uint32_t attempts, const Outcome& outcome);

}  // namespace bide::core
