// Envelope: a job in the outbox is a job of the local store in the queue kOutboxQueue, with the same id and kind. Its body is
// one line of JSON, the job as a request to a bide server would have it but without body and id, then the body as it is. Which
// rules it will run under is for the target to obey, so none of them applies here.

#pragma once

#include <string_view>

#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/result.h"

namespace bide::outbox {

inline constexpr std::string_view kOutboxQueue = "outbox";
inline constexpr std::string_view kOutboxContentType = "application/vnd.bide.outbox";
// A body may be this much shorter than elsewhere: the line before it needs room.
inline constexpr std::size_t kLineBytes = 64 * 1024;

// kInvalidArgument: by the rules of every broker, or the body leaves no room.
Result<Job> enclose(Job job, Time now);

// `age`: how long the job has been in the outbox. A delay is what is left of it. kDamaged: it is none of ours.
Result<Job> unclose(Job enclosed, Milliseconds age, Time now);

}  // namespace bide::outbox
