#include "brokers/rabbitmq/lost_set.h"

#include <chrono>
#include <utility>

#include "bide/wait.h"
#include "brokers/rabbitmq/job_message.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

// Of visitors who look at the same time; no name of a bide queue begins with a dot.
constexpr std::string_view kLockName = ".lost";

}  // namespace

Result<std::vector<LostMessage>> LostSet::list() {
  std::vector<LostMessage> all;
  const auto visited = visits_.visit(names_.lost(), names_.visit(kLockName), [&](auto&, std::uint64_t, AmqpMessage message) {
    all.push_back(lost_message_of(message, names_));
    return true;
  });
  if (!visited) return visited.error();
  return all;
}

Publication LostSet::to_queue(AmqpMessage message, const std::string& queue) const {
  Publication publication;
  publication.to.kind = Destination::Kind::kReady;
  publication.to.name = queue;
  Result<JobMessage> job = decode(message, queue);
  if (!job) {
    // The worker that takes it says what is wrong with it.
    strip_travel_headers(message.headers);
    message.expiration.clear();
    publication.message = std::move(message);
    return publication;
  }
  const std::int64_t now_us = platform::real_clock().now().wall_us;
  const Time now(std::chrono::floor<Milliseconds>(std::chrono::microseconds(now_us)));
  // Delays that were interrupted by the loss of a queue on their way go on.
  if (job->due && *job->due > now) publication.to.delay = *job->due - now;
  publication.message = encode(std::move(*job));
  return publication;
}

Status LostSet::publish(Publication publication) {
  return wait<void>([&](const Completion<void>& done) {
    publication.done = done;
    std::vector<Publication> one;
    one.push_back(std::move(publication));
    publisher_.publish(std::move(one));
  });
}

Result<std::vector<LostSet::Moved>> LostSet::requeue(const Choice& chosen, const std::string& to) {
  std::vector<Moved> moved;
  Status hopeless;  // Nobody waits for a server that is away once more for each message.
  const auto visited = visits_.visit(
      names_.lost(), names_.visit(kLockName), [&](Visits::Visit& visit, std::uint64_t tag, AmqpMessage message) {
        LostMessage lost = lost_message_of(message, names_);
        if (!chosen(lost)) return true;
        const std::string queue = to.empty() ? lost.queue : to;
        Status status = hopeless;
        if (queue.empty()) status = Error{ErrorCode::kInvalidArgument, "nobody knows which queue it belongs to"};
        if (status) status = publish(to_queue(std::move(message), queue));
        const bool away = !status && (status.error().code == ErrorCode::kUnavailable ||
                                      status.error().code == ErrorCode::kUnconfirmed);
        if (away) hopeless = Error{ErrorCode::kUnavailable, status.error().message};
        // Only now: it is in two places for a moment, never in none.
        if (status) {
          status = visit.remove(tag);
          if (!status) status = unconfirmed(status.error());
        }
        moved.push_back({std::move(lost), std::move(status)});
        return true;
      });
  if (!visited && moved.empty()) return visited.error();
  return moved;
}

Result<std::vector<LostSet::Moved>> LostSet::remove(const Choice& chosen) {
  std::vector<Moved> removed;
  const auto visited = visits_.visit(
      names_.lost(), names_.visit(kLockName), [&](Visits::Visit& visit, std::uint64_t tag, const AmqpMessage& message) {
        LostMessage lost = lost_message_of(message, names_);
        if (chosen(lost)) removed.push_back({std::move(lost), visit.remove(tag)});
        return true;
      });
  if (!visited && removed.empty()) return visited.error();
  return removed;
}

Result<std::size_t> LostSet::bring_back(const std::string& queue) {
  const Result<QueueCounts> lost = visits_.look_at(names_.lost());
  if (!lost) return lost.error();
  if (lost->messages == 0) return std::size_t{0};
  // Not what the server has given up or was told to take: it would come back for ever.
  const Result<std::vector<Moved>> moved =
      requeue([&](const LostMessage& each) { return each.queue == queue && each.why == kNoWayToGo; });
  if (!moved) return moved.error();
  std::size_t brought = 0;
  for (const Moved& each : *moved) brought += each.status ? 1 : 0;
  return brought;
}

}  // namespace bide::brokers::rabbitmq
