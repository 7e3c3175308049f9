#include "brokers/shared/calls.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace bide::brokers::shared {

namespace {

struct Target {
  Broker& broker;
  Inspector& inspector;
};

// Each reads its arguments and, if they are whole, makes the call.

bool enqueue(Target target, Decoder& in, Reply reply) {
  auto jobs = take<std::vector<Job>>(in);
  if (!in.done()) return false;
  target.broker.enqueue(std::move(jobs), replying<std::vector<Result<Enqueued>>>(std::move(reply)));
  return true;
}

bool extend(Target target, Decoder& in, Reply reply) {
  auto leases = take<std::vector<LeaseRef>>(in);
  if (!in.done()) return false;
  target.broker.extend(std::move(leases), replying<std::vector<Extended>>(std::move(reply)));
  return true;
}

bool settle(Target target, Decoder& in, Reply reply) {
  auto settlements = take<std::vector<Settlement>>(in);
  if (!in.done()) return false;
  target.broker.settle(std::move(settlements), replying<std::vector<Status>>(std::move(reply)));
  return true;
}

bool save_body(Target target, Decoder& in, Reply reply) {
  const auto lease = take<LeaseRef>(in);
  auto body = take<std::string>(in);
  if (!in.done()) return false;
  target.broker.save_body(lease, std::move(body), replying<void>(std::move(reply)));
  return true;
}

bool save_step(Target target, Decoder& in, Reply reply) {
  const auto lease = take<LeaseRef>(in);
  auto step = take<Step>(in);
  if (!in.done()) return false;
  target.broker.save_step(lease, std::move(step), replying<void>(std::move(reply)));
  return true;
}

bool queues(Target target, Decoder& in, Reply reply) {
  if (!in.done()) return false;
  target.inspector.queues(replying<std::vector<QueueInfo>>(std::move(reply)));
  return true;
}

bool find(Target target, Decoder& in, Reply reply) {
  const JobId id = in.id();
  if (!in.done()) return false;
  target.inspector.find(id, replying<JobInfo>(std::move(reply)));
  return true;
}

bool list(Target target, Decoder& in, Reply reply) {
  auto filter = take<JobFilter>(in);
  auto cursor = take<std::string>(in);
  const std::uint64_t limit = take<std::uint64_t>(in);
  if (!in.done()) return false;
  target.inspector.list(std::move(filter), std::move(cursor), limit, replying<JobPage>(std::move(reply)));
  return true;
}

bool explain(Target target, Decoder& in, Reply reply) {
  const JobId id = in.id();
  if (!in.done()) return false;
  target.inspector.explain(id, replying<Explanation>(std::move(reply)));
  return true;
}

bool audit(Target target, Decoder& in, Reply reply) {
  if (!in.done()) return false;
  target.inspector.audit(replying<AuditReport>(std::move(reply)));
  return true;
}

bool cancel(Target target, Decoder& in, Reply reply) {
  auto ids = take<std::vector<JobId>>(in);
  const auto options = take<CancelOptions>(in);
  if (!in.done()) return false;
  target.inspector.cancel(std::move(ids), options, replying<std::vector<Status>>(std::move(reply)));
  return true;
}

bool reschedule(Target target, Decoder& in, Reply reply) {
  const JobId id = in.id();
  const Time due = take<Time>(in);
  if (!in.done()) return false;
  target.inspector.reschedule(id, due, replying<void>(std::move(reply)));
  return true;
}

bool edit(Target target, Decoder& in, Reply reply) {
  const JobId id = in.id();
  auto change = take<JobEdit>(in);
  if (!in.done()) return false;
  target.inspector.edit(id, std::move(change), replying<void>(std::move(reply)));
  return true;
}

bool replay(Target target, Decoder& in, Reply reply) {
  auto ids = take<std::vector<JobId>>(in);
  const auto options = take<ReplayOptions>(in);
  if (!in.done()) return false;
  target.inspector.replay(std::move(ids), options, replying<std::vector<Status>>(std::move(reply)));
  return true;
}

bool pause(Target target, Decoder& in, Reply reply) {
  auto queue = take<std::string>(in);
  const bool paused = take<bool>(in);
  if (!in.done()) return false;
  target.inspector.pause(std::move(queue), paused, replying<void>(std::move(reply)));
  return true;
}

bool purge(Target target, Decoder& in, Reply reply) {
  auto queue = take<std::string>(in);
  if (!in.done()) return false;
  target.inspector.purge(std::move(queue), replying<std::uint64_t>(std::move(reply)));
  return true;
}

bool publish(Target target, Decoder& in, Reply reply) {
  auto events = take<std::vector<Job>>(in);
  if (!in.done()) return false;
  target.broker.publish(std::move(events), replying<std::vector<Result<Published>>>(std::move(reply)));
  return true;
}

bool bind(Target target, Decoder& in, Reply reply) {
  auto binding = take<Binding>(in);
  if (!in.done()) return false;
  target.inspector.bind(std::move(binding), replying<void>(std::move(reply)));
  return true;
}

bool bindings(Target target, Decoder& in, Reply reply) {
  if (!in.done()) return false;
  target.inspector.bindings(replying<std::vector<Binding>>(std::move(reply)));
  return true;
}

bool put_rules(Target target, Decoder& in, Reply reply) {
  auto rules = take<QueueRules>(in);
  if (!in.done()) return false;
  target.inspector.put_rules(std::move(rules), replying<void>(std::move(reply)));
  return true;
}

bool rules(Target target, Decoder& in, Reply reply) {
  if (!in.done()) return false;
  target.inspector.rules(replying<std::vector<QueueRules>>(std::move(reply)));
  return true;
}

bool backup(Target target, Decoder& in, Reply reply) {
  auto to = take<std::string>(in);
  if (!in.done()) return false;
  target.inspector.backup(std::move(to), replying<void>(std::move(reply)));
  return true;
}

bool backup_info(Target target, Decoder& in, Reply reply) {
  if (!in.done()) return false;
  target.inspector.backup_info(replying<BackupInfo>(std::move(reply)));
  return true;
}

bool put_schedule(Target target, Decoder& in, Reply reply) {
  auto schedule = take<Schedule>(in);
  if (!in.done()) return false;
  target.inspector.put_schedule(std::move(schedule), replying<PutSchedule>(std::move(reply)));
  return true;
}

bool schedules(Target target, Decoder& in, Reply reply) {
  if (!in.done()) return false;
  target.inspector.schedules(replying<std::vector<ScheduleInfo>>(std::move(reply)));
  return true;
}

bool remove_schedule(Target target, Decoder& in, Reply reply) {
  auto name = take<std::string>(in);
  if (!in.done()) return false;
  target.inspector.remove_schedule(std::move(name), replying<void>(std::move(reply)));
  return true;
}

bool pause_schedule(Target target, Decoder& in, Reply reply) {
  auto name = take<std::string>(in);
  const bool paused = take<bool>(in);
  if (!in.done()) return false;
  target.inspector.pause_schedule(std::move(name), paused, replying<void>(std::move(reply)));
  return true;
}

bool run_schedule(Target target, Decoder& in, Reply reply) {
  auto name = take<std::string>(in);
  if (!in.done()) return false;
  target.inspector.run_schedule(std::move(name), replying<JobId>(std::move(reply)));
  return true;
}

struct Call {
  FrameType type;
  bool (*execute)(Target, Decoder&, Reply);
  enum class Repeat { kOnce, kRepeatable, kReadOnly } repeat;
};

constexpr std::array kCalls = {
    Call{FrameType::kEnqueue, enqueue, Call::Repeat::kOnce},  // Jobs without an id would be there twice.
    Call{FrameType::kExtend, extend, Call::Repeat::kRepeatable},
    Call{FrameType::kSettle, settle, Call::Repeat::kRepeatable},  // Its tokens see to that.
    Call{FrameType::kSaveBody, save_body, Call::Repeat::kRepeatable},
    Call{FrameType::kSaveStep, save_step, Call::Repeat::kRepeatable},
    Call{FrameType::kQueues, queues, Call::Repeat::kReadOnly},
    Call{FrameType::kFind, find, Call::Repeat::kReadOnly},
    Call{FrameType::kList, list, Call::Repeat::kReadOnly},
    Call{FrameType::kExplain, explain, Call::Repeat::kReadOnly},
    Call{FrameType::kAudit, audit, Call::Repeat::kReadOnly},
    Call{FrameType::kCancel, cancel, Call::Repeat::kOnce},
    Call{FrameType::kReschedule, reschedule, Call::Repeat::kRepeatable},
    Call{FrameType::kEdit, edit, Call::Repeat::kRepeatable},
    Call{FrameType::kReplay, replay, Call::Repeat::kOnce},
    Call{FrameType::kPause, pause, Call::Repeat::kRepeatable},
    Call{FrameType::kPurge, purge, Call::Repeat::kOnce},
    Call{FrameType::kPublish, publish, Call::Repeat::kOnce},  // As enqueue.
    Call{FrameType::kBind, bind, Call::Repeat::kRepeatable},
    Call{FrameType::kBindings, bindings, Call::Repeat::kReadOnly},
    Call{FrameType::kPutRules, put_rules, Call::Repeat::kRepeatable},
    Call{FrameType::kRules, rules, Call::Repeat::kReadOnly},
    Call{FrameType::kBackup, backup, Call::Repeat::kOnce},  // The second would find the first.
    Call{FrameType::kBackupInfo, backup_info, Call::Repeat::kReadOnly},
    Call{FrameType::kPutSchedule, put_schedule, Call::Repeat::kRepeatable},
    Call{FrameType::kSchedules, schedules, Call::Repeat::kReadOnly},
    Call{FrameType::kRemoveSchedule, remove_schedule, Call::Repeat::kOnce},
    Call{FrameType::kPauseSchedule, pause_schedule, Call::Repeat::kRepeatable},
    Call{FrameType::kRunSchedule, run_schedule, Call::Repeat::kOnce},
};

const Call* find_call(FrameType type) {
  const auto* found =
      std::find_if(kCalls.begin(), kCalls.end(), [type](const Call& call) { return call.type == type; });
  return found == kCalls.end() ? nullptr : found;
}

}  // namespace

bool execute(FrameType type, std::string_view payload, Broker& broker, Inspector& inspector, Reply reply) {
  const Call* call = find_call(type);
  if (call == nullptr) return false;
  Decoder in(payload);
  return call->execute({broker, inspector}, in, std::move(reply));
}

bool execute_watch(std::string_view payload, Inspector& inspector, Reply reply, GiveUp& give_up) {
  Decoder in(payload);
  const JobId id = in.id();
  if (!in.done()) return false;
  give_up = inspector.watch(id, replying<JobInfo>(std::move(reply)));
  return true;
}

bool is_repeatable(FrameType type) {
  if (type == FrameType::kWatch) return true;
  const Call* call = find_call(type);
  return call != nullptr && call->repeat != Call::Repeat::kOnce;
}

bool is_read_only(FrameType type) {
  const Call* call = find_call(type);
  return call == nullptr || call->repeat == Call::Repeat::kReadOnly;
}

}  // namespace bide::brokers::shared
