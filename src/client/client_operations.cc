// Client, what is asked of the inspector: about jobs, and what people do with them.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "bide/wait.h"

namespace bide {

namespace {

// The one status of a call about one job.
Status only_status(Result<std::vector<Status>> statuses) {
  if (!statuses) return statuses.error();
  if (statuses->size() != 1) return Error{ErrorCode::kUnconfirmed, "the broker answered too little"};
  return statuses->front();
}

}  // namespace

Result<JobInfo> Client::find(JobId id) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<JobInfo>([&](auto done) { (*inspector)->find(id, std::move(done)); });
}

Result<JobInfo> Client::wait_for(JobId id, Milliseconds timeout) const {
  // Shared with the completion, which may be on its way when nobody waits any more.
  struct Slot {
    std::mutex mutex;
    std::condition_variable arrived;
    std::optional<Result<JobInfo>> result;
  };
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  auto slot = std::make_shared<Slot>();
  const GiveUp give_up = (*inspector)->watch(id, [slot](Result<JobInfo> info) {
    std::lock_guard lock(slot->mutex);
    slot->result.emplace(std::move(info));
    slot->arrived.notify_one();
  });
  std::unique_lock lock(slot->mutex);
  if (!slot->arrived.wait_for(lock, timeout, [&] { return slot->result.has_value(); })) {
    lock.unlock();
    give_up();
    return Error{ErrorCode::kUnavailable, "job " + id.to_string() + " was neither done nor dead after " +
                                              std::to_string(timeout.count()) + " ms"};
  }
  return std::move(*slot->result);
}

Result<Reply> Client::wait_for_result(JobId id, Milliseconds timeout) const {
  Result<JobInfo> info = wait_for(id, timeout);
  if (!info) return info.error();
  if (info->state == JobState::kDone) return Reply{std::move(info->result), std::move(info->result_content_type)};
  const std::string why = !info->history.empty() ? info->history.back().text
                          : info->dead_reason    ? std::string(to_string(*info->dead_reason))
                                                 : std::string();
  return Error{ErrorCode::kHandlerFailed, "job " + id.to_string() + " is dead" + (why.empty() ? "" : ": " + why)};
}

Status Client::put_rules(QueueRules rules) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<void>([&](auto done) { (*inspector)->put_rules(std::move(rules), std::move(done)); });
}

Status Client::cancel(JobId id) const { return only_status(cancel(std::vector<JobId>{id})); }

Result<std::vector<Status>> Client::cancel(std::vector<JobId> ids) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<std::vector<Status>>([&](auto done) { (*inspector)->cancel(std::move(ids), {}, std::move(done)); });
}

Status Client::reschedule(JobId id, Time due) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<void>([&](auto done) { (*inspector)->reschedule(id, due, std::move(done)); });
}

Status Client::replay(JobId id, const ReplayOptions& options) const {
  return only_status(replay(std::vector<JobId>{id}, options));
}

Result<std::vector<Status>> Client::replay(std::vector<JobId> ids, const ReplayOptions& options) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<std::vector<Status>>([&](auto done) { (*inspector)->replay(std::move(ids), options, std::move(done)); });
}

Result<std::vector<QueueInfo>> Client::queues() const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<std::vector<QueueInfo>>([&](auto done) { (*inspector)->queues(std::move(done)); });
}

Status Client::pause(std::string queue, bool paused) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<void>([&](auto done) { (*inspector)->pause(std::move(queue), paused, std::move(done)); });
}

Result<Explanation> Client::explain(JobId id) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<Explanation>([&](auto done) { (*inspector)->explain(id, std::move(done)); });
}

}  // namespace bide
