#include "brokers/shared/calls.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace bide::brokers::shared {

namespace {

struct Place {
  Broker& broker;
  Inspector& inspector;
};

// Each reads its arguments and, if they are whole, makes the call.

bool enqueue(Place place, Decoder& in, Reply reply) {
  auto jobs = take<std::vector<Job>>(in);
  if (!in.done()) return false;
  place.broker.enqueue(std::move(jobs), replying<std::vector<Result<Enqueued>>>(std::move(reply)));
  return true;
}

bool extend(Place place, Decoder& in, Reply reply) {
  auto leases = take<std::vector<LeaseRef>>(in);
  if (!in.done()) return false;
  place.broker.extend(std::move(leases), replying<std::vector<Extended>>(std::move(reply)));
  return true;
}

bool settle(Place place, Decoder& in, Reply reply) {
  auto settlements = take<std::vector<Settlement>>(in);
  if (!in.done()) return false;
  place.broker.settle(std::move(settlements), replying<std::vector<Status>>(std::move(reply)));
  return true;
}

bool save_body(Place place, Decoder& in, Reply reply) {
  const auto lease = take<LeaseRef>(in);
  auto body = take<std::string>(in);
  if (!in.done()) return false;
  place.broker.save_body(lease, std::move(body), replying<void>(std::move(reply)));
  return true;
}

bool queues(Place place, Decoder& in, Reply reply) {
  if (!in.done()) return false;
  place.inspector.queues(replying<std::vector<QueueInfo>>(std::move(reply)));
  return true;
}

bool find(Place place, Decoder& in, Reply reply) {
  const JobId id = in.id();
  if (!in.done()) return false;
  place.inspector.find(id, replying<JobInfo>(std::move(reply)));
  return true;
}

bool list(Place place, Decoder& in, Reply reply) {
  auto filter = take<JobFilter>(in);
  auto cursor = take<std::string>(in);
  const std::uint64_t limit = take<std::uint64_t>(in);
  if (!in.done()) return false;
  place.inspector.list(std::move(filter), std::move(cursor), limit, replying<JobPage>(std::move(reply)));
  return true;
}

bool explain(Place place, Decoder& in, Reply reply) {
  const JobId id = in.id();
  if (!in.done()) return false;
  place.inspector.explain(id, replying<Explanation>(std::move(reply)));
  return true;
}

bool audit(Place place, Decoder& in, Reply reply) {
  if (!in.done()) return false;
  place.inspector.audit(replying<AuditReport>(std::move(reply)));
  return true;
}

bool cancel(Place place, Decoder& in, Reply reply) {
  auto ids = take<std::vector<JobId>>(in);
  const auto options = take<CancelOptions>(in);
  if (!in.done()) return false;
  place.inspector.cancel(std::move(ids), options, replying<std::vector<Status>>(std::move(reply)));
  return true;
}

bool reschedule(Place place, Decoder& in, Reply reply) {
  const JobId id = in.id();
  const Time due = take<Time>(in);
  if (!in.done()) return false;
  place.inspector.reschedule(id, due, replying<void>(std::move(reply)));
  return true;
}

bool replay(Place place, Decoder& in, Reply reply) {
  auto ids = take<std::vector<JobId>>(in);
  const auto options = take<ReplayOptions>(in);
  if (!in.done()) return false;
  place.inspector.replay(std::move(ids), options, replying<std::vector<Status>>(std::move(reply)));
  return true;
}

bool pause(Place place, Decoder& in, Reply reply) {
  auto queue = take<std::string>(in);
  const bool paused = take<bool>(in);
  if (!in.done()) return false;
  place.inspector.pause(std::move(queue), paused, replying<void>(std::move(reply)));
  return true;
}

bool purge(Place place, Decoder& in, Reply reply) {
  auto queue = take<std::string>(in);
  if (!in.done()) return false;
  place.inspector.purge(std::move(queue), replying<std::uint64_t>(std::move(reply)));
  return true;
}

struct Call {
  FrameType type;
  bool (*carry_out)(Place, Decoder&, Reply);
  enum class Sort { kOnce, kRepeatable, kQuestion } sort;
};

constexpr std::array kCalls = {
    Call{FrameType::kEnqueue, enqueue, Call::Sort::kOnce},  // Jobs without an id would be there twice.
    Call{FrameType::kExtend, extend, Call::Sort::kRepeatable},
    Call{FrameType::kSettle, settle, Call::Sort::kRepeatable},  // Its tokens see to that.
    Call{FrameType::kSaveBody, save_body, Call::Sort::kRepeatable},
    Call{FrameType::kQueues, queues, Call::Sort::kQuestion},
    Call{FrameType::kFind, find, Call::Sort::kQuestion},
    Call{FrameType::kList, list, Call::Sort::kQuestion},
    Call{FrameType::kExplain, explain, Call::Sort::kQuestion},
    Call{FrameType::kAudit, audit, Call::Sort::kQuestion},
    Call{FrameType::kCancel, cancel, Call::Sort::kOnce},
    Call{FrameType::kReschedule, reschedule, Call::Sort::kRepeatable},
    Call{FrameType::kReplay, replay, Call::Sort::kOnce},
    Call{FrameType::kPause, pause, Call::Sort::kRepeatable},
    Call{FrameType::kPurge, purge, Call::Sort::kOnce},
};

const Call* find_call(FrameType type) {
  const auto* found =
      std::find_if(kCalls.begin(), kCalls.end(), [type](const Call& call) { return call.type == type; });
  return found == kCalls.end() ? nullptr : found;
}

}  // namespace

bool carry_out(FrameType type, std::string_view payload, Broker& broker, Inspector& inspector, Reply reply) {
  const Call* call = find_call(type);
  if (call == nullptr) return false;
  Decoder in(payload);
  return call->carry_out({broker, inspector}, in, std::move(reply));
}

bool carry_out_watch(std::string_view payload, Inspector& inspector, Reply reply, GiveUp& give_up) {
  Decoder in(payload);
  const JobId id = in.id();
  if (!in.done()) return false;
  give_up = inspector.watch(id, replying<JobInfo>(std::move(reply)));
  return true;
}

bool is_repeatable(FrameType type) {
  if (type == FrameType::kWatch) return true;
  const Call* call = find_call(type);
  return call != nullptr && call->sort != Call::Sort::kOnce;
}

bool is_question(FrameType type) {
  const Call* call = find_call(type);
  return call == nullptr || call->sort == Call::Sort::kQuestion;
}

}  // namespace bide::brokers::shared
