// SharedClient, the calls of Broker and Inspector: each becomes a frame, and its answer what the caller waits for.

#include <memory>
#include <utility>

#include "brokers/shared/shared_client.h"
#include "core/job_rules.h"
#include "platform/clock.h"

namespace bide::brokers::shared {

namespace {

constexpr std::size_t kUnansweredBytes = 64ull << 20;
constexpr std::size_t kItemBytes = kFrameBytes - (1 << 20);

Error not_understood() { return {ErrorCode::kUnconfirmed, "the owner's answer is not understood"}; }

// At least what it takes in a frame.
std::size_t bytes_of(const Job& job) {
  std::size_t bytes = 256 + job.kind.size() + job.queue.size() + job.body.size() + job.content_type.size() +
                      job.unique_key.size() + 8 * job.retry.waits.size() + job.group.size() + job.after.size() * JobId::kSize;
  for (const auto& [name, value] : job.headers) bytes += name.size() + value.size() + 20;
  return bytes;
}

std::size_t bytes_of(const Settlement& settlement) {
  std::size_t bytes = 256;
  for (const Job& effect : settlement.effects) bytes += bytes_of(effect);
  if (const auto* done = std::get_if<Done>(&settlement.outcome))
    bytes += done->result.size() + done->content_type.size();
  if (const auto* dead = std::get_if<Dead>(&settlement.outcome)) bytes += dead->error.size();
  if (const auto* returned = std::get_if<Returned>(&settlement.outcome)) bytes += returned->note.size();
  if (const auto* again = std::get_if<RetryAt>(&settlement.outcome)) {
    bytes += again->error.size() + (again->body ? again->body->size() : 0);
  }
  return bytes;
}

// Why it cannot even be sent.
Error refusal(const Job& job) {
  const std::int64_t wall_ms = platform::real_clock().now().wall_us / 1000;
  if (const Status valid = core::validate(job, Time(Milliseconds(wall_ms))); !valid) return valid.error();
  return {ErrorCode::kInvalidArgument, "the job has more than " + std::to_string(kItemBytes) + " bytes"};
}
Error refusal(const Settlement& settlement) {
  return {ErrorCode::kInvalidArgument, "the outcome of job " + settlement.lease.id.to_string() +
                                           " and its effects have more than " + std::to_string(kItemBytes) + " bytes"};
}

}  // namespace

template <class T, class... Args>
std::uint64_t SharedClient::call(FrameType type, Completion<T> done, const Args&... arguments) {
  const std::uint64_t number = ++last_number_;
  std::string frame = make_frame(type, number, [&](Encoder& out) { put(out, arguments...); });
  if (frame.size() > kFrameBytes) {
    done(Error{ErrorCode::kInvalidArgument, "the call is too long: ask for less"});
    return number;
  }
  submit(type, number, std::move(frame), [done = std::move(done)](Result<std::string_view> payload) {
    if (!payload) return done(payload.error());
    Decoder in(*payload);
    Result<T> result = take<Result<T>>(in);
    // An error may stand for any kind of answer.
    if (!in.done()) return done(not_understood());
    done(std::move(result));
  });
  return number;
}

// A call that goes in pieces, one after the other: the owner never has more than one of them to hold.
template <class Item, class R>
struct SharedClient::Batch {
  std::vector<Item> items;
  std::vector<R> results;  // So far.
  Completion<std::vector<R>> done;
};

template <class Item, class R>
void SharedClient::call_in_pieces(FrameType type, std::vector<Item> items, Completion<std::vector<R>> done) {
  std::size_t bytes = 0;
  for (const Item& item : items) bytes += bytes_of(item);
  if (bytes <= kPieceBytes) {
    call<std::vector<R>>(type, std::move(done), items);
    return;
  }
  call_next_piece(type, std::make_shared<Batch<Item, R>>(Batch<Item, R>{std::move(items), {}, std::move(done)}));
}

template <class Item, class R>
void SharedClient::call_next_piece(FrameType type, std::shared_ptr<Batch<Item, R>> batch) {
  const std::size_t first = batch->results.size();
  std::vector<Item> piece;
  std::size_t bytes = 0;
  for (std::size_t i = first; i < batch->items.size(); ++i) {
    const std::size_t size = bytes_of(batch->items[i]);
    if (size > kItemBytes && piece.empty()) {
      batch->results.push_back(refusal(batch->items[i]));
      return call_next_piece(type, std::move(batch));
    }
    bytes += size;
    if (bytes > kPieceBytes && !piece.empty()) break;
    piece.push_back(std::move(batch->items[i]));
  }
  if (piece.empty()) return batch->done(std::move(batch->results));
  const std::size_t count = piece.size();
  auto then = [this, type, batch = std::move(batch), count](Result<std::vector<R>> answer) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!answer) {
        batch->results.push_back(answer.error());
      } else {
        batch->results.push_back(i < answer->size() ? std::move((*answer)[i]) : R(not_understood()));
      }
    }
    call_next_piece(type, batch);
  };
  call<std::vector<R>>(type, std::move(then), piece);
}

std::optional<Error> SharedClient::find_overload() const {
  std::lock_guard lock(mutex_);
  if (unanswered_bytes_ <= kUnansweredBytes) return std::nullopt;
  return Error{ErrorCode::kOverloaded, "too many jobs are waiting for the owner of the data: try again in a moment"};
}

void SharedClient::enqueue(std::vector<Job> jobs, Completion<std::vector<Result<Enqueued>>> done) {
  if (const auto overload = find_overload()) return done(*overload);
  call_in_pieces<Job, Result<Enqueued>>(FrameType::kEnqueue, std::move(jobs), std::move(done));
}

void SharedClient::publish(std::vector<Job> events, Completion<std::vector<Result<Published>>> done) {
  if (const auto overload = find_overload()) return done(*overload);
  call_in_pieces<Job, Result<Published>>(FrameType::kPublish, std::move(events), std::move(done));
}

void SharedClient::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  auto noted = tracking(leases, std::move(done));
  call<std::vector<Extended>>(FrameType::kExtend, std::move(noted), leases);
}

void SharedClient::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  auto noted = tracking(settlements, std::move(done));
  call_in_pieces<Settlement, Status>(FrameType::kSettle, std::move(settlements), std::move(noted));
}

void SharedClient::save_body(LeaseRef lease, std::string body, Completion<void> done) {
  call<void>(FrameType::kSaveBody, std::move(done), lease, body);
}

void SharedClient::save_step(LeaseRef lease, Step step, Completion<void> done) {
  call<void>(FrameType::kSaveStep, std::move(done), lease, step);
}

Pressure SharedClient::pressure() const {
  std::unique_lock lock(mutex_);
  if (state_ == State::kOwner) {
    Broker* const broker = local_owner_.broker;
    lock.unlock();
    return broker->pressure();
  }
  if (state_ != State::kConnected) {
    return {Pressure::Level::kHigh, "the owner of the data directory is gone, looking for the next", Milliseconds(50),
            Pressure::Cause::kUnreachable};
  }
  if (pressure_.level == Pressure::Level::kOk && unanswered_bytes_ > kUnansweredBytes / 2) {
    return {Pressure::Level::kHigh, "jobs come faster than the owner of the data takes them", Milliseconds(10),
            Pressure::Cause::kQueueLength};
  }
  return pressure_;
}

Capabilities SharedClient::capabilities() const {
  std::lock_guard lock(mutex_);
  return capabilities_;
}

void SharedClient::queues(Completion<std::vector<QueueInfo>> done) {
  call<std::vector<QueueInfo>>(FrameType::kQueues, std::move(done));
}

void SharedClient::find(JobId id, Completion<JobInfo> done) { call<JobInfo>(FrameType::kFind, std::move(done), id); }

void SharedClient::list(JobFilter filter, std::string cursor, std::size_t limit, Completion<JobPage> done) {
  call<JobPage>(FrameType::kList, std::move(done), filter, cursor, std::uint64_t{limit});
}

void SharedClient::explain(JobId id, Completion<Explanation> done) {
  call<Explanation>(FrameType::kExplain, std::move(done), id);
}

void SharedClient::audit(Completion<AuditReport> done) { call<AuditReport>(FrameType::kAudit, std::move(done)); }

GiveUp SharedClient::watch(JobId id, Completion<JobInfo> done) {
  return [weak = weak_from_this(), number = call<JobInfo>(FrameType::kWatch, std::move(done), id)] {
    if (const auto self = weak.lock()) self->give_up_watch(number);
  };
}

void SharedClient::cancel(std::vector<JobId> ids, CancelOptions options, Completion<std::vector<Status>> done) {
  call<std::vector<Status>>(FrameType::kCancel, std::move(done), ids, options);
}

void SharedClient::reschedule(JobId id, Time due, Completion<void> done) {
  call<void>(FrameType::kReschedule, std::move(done), id, due);
}

void SharedClient::edit(JobId id, JobEdit edit, Completion<void> done) {
  call<void>(FrameType::kEdit, std::move(done), id, edit);
}

void SharedClient::replay(std::vector<JobId> ids, ReplayOptions options, Completion<std::vector<Status>> done) {
  call<std::vector<Status>>(FrameType::kReplay, std::move(done), ids, options);
}

void SharedClient::pause(std::string queue, bool paused, Completion<void> done) {
  call<void>(FrameType::kPause, std::move(done), queue, paused);
}

void SharedClient::purge(std::string queue, Completion<std::uint64_t> done) {
  call<std::uint64_t>(FrameType::kPurge, std::move(done), queue);
}

void SharedClient::bind(Binding binding, Completion<void> done) {
  call<void>(FrameType::kBind, std::move(done), binding);
}

void SharedClient::bindings(Completion<std::vector<Binding>> done) {
  call<std::vector<Binding>>(FrameType::kBindings, std::move(done));
}

void SharedClient::put_rules(QueueRules rules, Completion<void> done) {
  call<void>(FrameType::kPutRules, std::move(done), rules);
}

void SharedClient::rules(Completion<std::vector<QueueRules>> done) {
  call<std::vector<QueueRules>>(FrameType::kRules, std::move(done));
}

void SharedClient::backup(std::string target, Completion<void> done) {
  call<void>(FrameType::kBackup, std::move(done), target);
}

void SharedClient::backup_info(Completion<BackupInfo> done) {
  call<BackupInfo>(FrameType::kBackupInfo, std::move(done));
}

void SharedClient::put_schedule(Schedule schedule, Completion<PutSchedule> done) {
  call<PutSchedule>(FrameType::kPutSchedule, std::move(done), schedule);
}

void SharedClient::schedules(Completion<std::vector<ScheduleInfo>> done) {
  call<std::vector<ScheduleInfo>>(FrameType::kSchedules, std::move(done));
}

void SharedClient::remove_schedule(std::string name, Completion<void> done) {
  call<void>(FrameType::kRemoveSchedule, std::move(done), name);
}

void SharedClient::pause_schedule(std::string name, bool paused, Completion<void> done) {
  call<void>(FrameType::kPauseSchedule, std::move(done), name, paused);
}

void SharedClient::run_schedule(std::string name, Completion<JobId> done) {
  call<JobId>(FrameType::kRunSchedule, std::move(done), name);
}

}  // namespace bide::brokers::shared
