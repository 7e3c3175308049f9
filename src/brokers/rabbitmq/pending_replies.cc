#include "brokers/rabbitmq/pending_replies.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace bide::brokers::rabbitmq {

namespace {

// Whoever asks for the reply does so when the request is confirmed.
constexpr Milliseconds kKeptBeyondDeadline{60'000};

template <class E>
std::optional<E> enum_of(const Field* field, std::initializer_list<E> all) {
  if (field == nullptr || field->text() == nullptr) return std::nullopt;
  for (const E each : all) {
    if (to_string(each) == *field->text()) return each;
  }
  return std::nullopt;
}

JobInfo info_of(const JobId& id, AmqpMessage reply) {
  JobInfo info;
  info.job.id = id;
  const Field* const error = find_field(reply.headers, "bide-error");
  if (error == nullptr) {
    info.state = JobState::kDone;
    info.result = std::move(reply.body);
    info.result_content_type = std::move(reply.content_type);
    return info;
  }
  info.state = JobState::kDead;
  info.dead_reason = enum_of(find_field(reply.headers, "bide-dead"),
                             {DeadReason::kExhausted, DeadReason::kRejected, DeadReason::kExpired, DeadReason::kPoison})
                         .value_or(DeadReason::kRejected);
  AttemptError last;
  last.fault = enum_of(find_field(reply.headers, "bide-fault"),
                       {Fault::kFailed, Fault::kTimedOut, Fault::kLost, Fault::kCrashed})
                   .value_or(Fault::kFailed);
  if (error->text() != nullptr) last.text = error->text()->substr(0, Limits::kErrorBytes);
  info.history.push_back(std::move(last));
  return info;
}

}  // namespace

AmqpMessage encode_reply(const JobId& id, const Outcome& outcome) {
  AmqpMessage reply;
  reply.correlation_id = id.to_string();
  reply.persistent = false;
  if (const Done* const done = std::get_if<Done>(&outcome)) {
    reply.body = done->result;
    reply.content_type = done->content_type;
  } else if (const Dead* const dead = std::get_if<Dead>(&outcome)) {
    reply.headers.emplace_back("bide-error", dead->error.substr(0, Limits::kErrorBytes));
    reply.headers.emplace_back("bide-dead", to_string(dead->reason));
    reply.headers.emplace_back("bide-fault", to_string(dead->fault));
  }
  return reply;
}

void PendingReplies::expect(const JobId& id, Time deadline, Time now) {
  const std::lock_guard lock(mutex_);
  if (pending_.size() >= sweep_at_) {
    std::erase_if(pending_, [now](const auto& entry) {
      return !entry.second.done && entry.second.deadline + kKeptBeyondDeadline < now;
    });
    sweep_at_ = std::max<std::size_t>(1024, 2 * pending_.size());
  }
  pending_[id].deadline = deadline;
}

void PendingReplies::forget(const JobId& id) {
  const std::lock_guard lock(mutex_);
  pending_.erase(id);
}

void PendingReplies::take(AmqpMessage reply) {
  Completion<JobInfo> done;
  std::optional<JobInfo> info;
  {
    const std::lock_guard lock(mutex_);
    const Result<JobId> id = JobId::parse(reply.correlation_id);
    const auto found = id ? pending_.find(*id) : pending_.end();
    if (found == pending_.end() || found->second.reply) {
      dropped_ += 1;
      return;
    }
    info = info_of(*id, std::move(reply));
    done = std::exchange(found->second.done, nullptr);
    if (done) {
      pending_.erase(found);
    } else {
      found->second.reply = std::move(info);
    }
  }
  if (done) done(std::move(*info));
}

bool PendingReplies::watch(const JobId& id, Completion<JobInfo>& done) {
  std::optional<JobInfo> reply;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(id);
    if (found == pending_.end() || found->second.done) return false;
    if (!found->second.reply) {
      found->second.done = std::move(done);
      return true;
    }
    reply = std::move(found->second.reply);
    pending_.erase(found);
  }
  done(std::move(*reply));
  return true;
}

void PendingReplies::give_up(const JobId& id) {
  Completion<JobInfo> released;
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  released = std::move(found->second.done);
  pending_.erase(found);
}

void PendingReplies::close(const Error& error) {
  std::vector<Completion<JobInfo>> all;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, pending] : pending_) {
      if (pending.done) all.push_back(std::move(pending.done));
    }
    pending_.clear();
  }
  for (const Completion<JobInfo>& done : all) done(error);
}

std::uint64_t PendingReplies::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace bide::brokers::rabbitmq
