// Garbage collection: removes delay queues that nobody needs now. They are shared and few, so this is for deployments
// whose delays have changed.
//
// A delay queue is removed only when no job can be on its way to or through it:
//   - it is empty, has no consumer, and a message sent through it comes out (what has expired and waits to be passed on
//   is
//     not counted by the server);
//   - no queue that comes earlier on a job's way has a job in it, for nobody sees which way that job will take;
//   - no known ready queue is nearly full: in front of a full one jobs wait uncounted.
// A process that is running remembers what it has declared and would send jobs after a queue that is gone, and the
// server has no "delete if empty" for quorum queues. So nothing that enqueues or retries may be running meanwhile.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"

namespace bide::brokers::rabbitmq {

struct GcOptions {
  bool dry_run = false;
  std::vector<std::string> queues = {};  // bide queues to look at, besides those that are announced.
  Milliseconds patience{5000};           // With probes.
};

struct GcEntry {
  std::string queue = {};
  bool removed = false;  // With dry_run: would be.
  std::string why = {};  // It was kept.
};

Result<std::vector<GcEntry>> collect_garbage(const Settings& settings, const GcOptions& options);

}  // namespace bide::brokers::rabbitmq
