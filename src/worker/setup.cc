#include "worker/setup.h"

#include <chrono>
#include <set>

#include "core/duration.h"
#include "core/quote.h"

namespace bide::worker {

namespace {

Error invalid(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

}  // namespace

Status Setup::validate() const {
  if (options.queues.empty()) return invalid("a worker needs at least one queue");
  for (const WorkerQueue& queue : options.queues) {
    if (queue.name.empty()) return invalid("a queue of the worker has no name");
    if (queue.weight < 1 || queue.weight > 1000) {
      return invalid("the weight of queue " + core::quoted(queue.name) + " is " + std::to_string(queue.weight) +
                     "; allowed is 1 to 1000");
    }
  }
  if (options.concurrency < 0 || options.concurrency > 10'000) {
    return invalid("concurrency is " + std::to_string(options.concurrency) +
                   "; allowed is 1 to 10000, or 0 for one for each core");
  }
  if (options.credit < 0 || options.credit > 1'000'000) {
    return invalid("credit is " + std::to_string(options.credit) + "; allowed is 1 to 1000000, or 0 for automatic");
  }
  if (options.lease < std::chrono::seconds(1) || options.lease > std::chrono::hours(1)) {
    return invalid("lease is " + core::format_duration(options.lease) + "; allowed is 1s to 1h");
  }
  if (options.grace < Milliseconds(0)) return invalid("grace must not be negative");
  if (options.abandoned_threads < 0) return invalid("abandoned_threads must not be negative");
  if (options.unknown_kind_wait < Milliseconds(0)) return invalid("unknown_kind_wait must not be negative");
  std::set<std::string> kinds;
  for (const auto& [kind, handler] : handlers) {
    if (kind.empty()) return invalid("a handler has an empty kind");
    if (!kinds.insert(kind).second) return invalid("kind " + core::quoted(kind) + " has two handlers");
  }
  return {};
}

}  // namespace bide::worker
