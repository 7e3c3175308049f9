// explanation_of: the one reason why a job is not running, or what it is doing.

#pragma once

#include "bide/inspector.h"

namespace bide::brokers::database {

// `queue` counts for a ready job only. `has_room`: some worker of the queue could take one more.
Explanation explanation_of(const JobInfo& info, const QueueInfo& queue, bool has_room);

}  // namespace bide::brokers::database
