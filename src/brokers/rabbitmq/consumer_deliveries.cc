// From a delivery to a lease.

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/consumer_state.h"
#include "core/retry_decision.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

// What is due so soon waits here; what is due later goes through a delay once more.
constexpr Milliseconds kShortWait{25};
// A delay that is not over by the clock of this machine, though the server has let it pass: the server was wrong (its
// nodes measure with clocks of their own), or the clocks of two machines differ. Nothing starts early, so it waits; but
// a clock that is wrong by more than this is not obeyed.
constexpr Milliseconds kMostClockDifference{60'000};
constexpr Milliseconds kLookAgain{100};
// Whoever had a message before and lives is about to say so: the server delivers again at once.
constexpr Milliseconds kNoticeTakes{2000};
// Before a job that has one life left is looked at again, when another such job is running here.
constexpr Milliseconds kTurn{1000};
constexpr std::size_t kMostInterrupted = 10'000;

}  // namespace

void Consumer::State::take_delivery(Delivery delivery) {
  const auto found = sources.find(delivery.channel);
  if (found == sources.end()) return;
  const std::shared_ptr<Source> source = found->second;
  const std::optional<std::size_t> consumer = source->consumers.delivered(delivery.consumer);
  if (!consumer) return;  // Of an earlier life of the channel's number.
  source->acks.delivered(delivery.tag);
  count<&Stats::delivered>();

  JobDelivery taken;
  taken.consumer = *consumer;
  taken.source = source;
  taken.serial = source->serial;
  taken.tag = delivery.tag;
  taken.arrived = steady_clock::now();
  auto received = dialect.receive(std::move(delivery), source->queue, now());
  if (ReceivedJob* job = std::get_if<ReceivedJob>(&received)) taken.job = std::move(*job);
  if (taken.job.deliveries > 0) count<&Stats::redelivered>();
  JobId& id = taken.message().job.id;
  if (id.is_nil()) id = ids.next(now().time_since_epoch().count(), random.next());
  if (Publication* instead = std::get_if<Publication>(&received)) {
    return replace(std::move(taken), std::move(*instead), true);
  }
  stamps.saw(taken.message().published);
  if (source->owner->ended || wanted_prefetch(*source) == 0) return put_back(std::move(taken));
  if (source->buffer.empty()) {
    // After a pause it has no claim to what it did not ask for.
    double least = source->served;
    for (const auto& other : source->owner->sources) {
      if (!other->buffer.empty()) least = std::max(least, other->served);
    }
    source->served = least;
  }
  source->buffer.push_back(std::move(taken));
}

void Consumer::State::choose() {
  if (!log.is_read()) return;
  for (const auto& subscriber : subscribers) {
    while (subscriber->wants_more()) {
      Source* next = nullptr;
      for (const auto& source : subscriber->sources) {
        if (source->buffer.empty()) continue;
        if (next == nullptr || source->served < next->served) next = source.get();
      }
      if (next == nullptr) break;
      next->served += 1.0 / next->weight;
      subscriber->out += 1;
      to_check.push_back(std::move(next->buffer.front()));
      next->buffer.pop_front();
    }
  }
}

void Consumer::State::check_chosen() {
  if (!log.may_read()) return;
  if (to_check.empty() && !log.wants_read(!subscribers.empty() || !leases.empty())) return;
  checking = std::exchange(to_check, {});
  if (Status begun = log.begin_read(); !begun) return lose(begun.error());
  if (!settings.notices) take_event(GetEmpty{});
}

// In their turn before others; they have been chosen once.
void Consumer::State::look_at_doubtful() {
  for (; !doubtful.empty() && doubtful.front().first <= steady_clock::now(); doubtful.pop_front()) {
    JobDelivery delivery = std::move(doubtful.front().second);
    if (!valid(delivery)) continue;
    const std::shared_ptr<Source> source = delivery.source;
    if (source->owner->ended || wanted_prefetch(*source) == 0) {
      put_back(std::move(delivery));
    } else {
      source->buffer.push_front(std::move(delivery));
    }
  }
}

Consumer::State::Ends Consumer::State::ends_of(const JobDelivery& delivery) const {
  const JobId id = delivery.message().job.id;
  const std::int64_t published = delivery.message().published;
  const std::uint32_t deliveries = delivery.job.deliveries;
  const std::uint32_t ends = deliveries - std::min(deliveries, log.board().spared(id, published));
  const std::uint32_t lost = std::min(ends, log.board().lost(id, published));
  return {ends - lost, lost};
}

// Everything that was confirmed before this job could start is known now.
void Consumer::State::judge(JobDelivery delivery) {
  Subscriber& owner = *delivery.source->owner;
  const NoticeBoard& board = log.board();
  JobMessage& message = delivery.message();
  // Messages of others may share an id; leases may not.
  const auto is_in_use = [&] { return leases.contains(message.job.id) || replaced.contains(message.job.id); };
  if (!dialect.ids_are_unique() && is_in_use()) {
    message.job.id = ids.next(now().time_since_epoch().count(), random.next());
  }
  const JobId id = message.job.id;
  const auto look_again = [&](Milliseconds wait) {  // Counts as out meanwhile.
    auto waits = std::make_shared<JobDelivery>(std::move(delivery));
    timers.after(wait, [this, waits] { to_check.push_back(std::move(*waits)); });
  };
  if (!valid(delivery)) return owner.one_out_less();
  if (board.is_cancelled(id, message.generation) || board.is_purged(message.job.queue, message.published)) {
    owner.one_out_less();
    count<&Stats::dropped>();
    return acknowledge(delivery);
  }
  // Each copy of a job is stamped later than the one it replaces: this one was settled, or is older than one that was.
  if (settled.is_over(message) || board.is_over(id, message.published)) {
    owner.one_out_less();
    count<&Stats::repeated_acks>();
    return acknowledge(delivery);
  }
  // The connection was lost while its replacement was on its way. Another replacement would be a second job: first it
  // must be known what became of that one.
  const auto going = replaced.find(id);
  if (going != replaced.end() && message.published <= going->second) return look_again(kLookAgain);
  if (HeldLease* const held = leases.find(id)) {
    owner.one_out_less();
    return held->duplicates.push_back(std::move(delivery));
  }
  if (owner.ended || board.is_paused(message.job.queue)) {
    owner.one_out_less();
    return put_back(std::move(delivery));
  }

  const Time moment = now();
  // Delivered before without an acknowledgement: each time somebody's process or connection ended.
  const Ends ends = ends_of(delivery);
  if (ends.crashed > 0 && settings.notices && !delivery.waited) {
    // Perhaps only its connection, and whoever had it is about to say so.
    owner.one_out_less();
    delivery.waited = true;
    doubtful.emplace_back(steady_clock::now() + kNoticeTakes, std::move(delivery));
    return;
  }
  delivery.job.deliveries = 0;
  if (const std::uint32_t all = ends.crashed + ends.lost; all > 0) {
    owner.one_out_less();
    for (std::uint32_t i = 1;; ++i) {
      const Fault fault = i <= ends.lost ? Fault::kLost : Fault::kCrashed;
      const char* const text = fault == Fault::kLost ? "the connection to the server was lost during the attempt"
                                                     : "its worker vanished during the attempt";
      Outcome outcome = core::decide_after_fault(message.job.retry, message.counts, fault, text, random.next());
      if (i == all || std::holds_alternative<Dead>(outcome)) return depart(std::move(delivery), std::move(outcome));
      record_fault(message, fault, text, moment);
    }
  }

  if (message.job.expires && *message.job.expires <= moment) {
    owner.one_out_less();
    message.note = "not started before it expired";
    return depart(std::move(delivery), Dead{.reason = DeadReason::kExpired});
  }
  // The copy that was written last may be due later than an earlier try to write it, which has the same stamp.
  Time due = std::max(message.due.value_or(moment), settled.due_of_copy(message).value_or(moment));
  bool binding = message.due_by_wall_clock;
  if (const std::optional<Time> later = board.put_off_until(id, message.generation); later && *later > due) {
    due = *later;
    binding = true;
  }
  const Milliseconds early = due - moment;
  const Milliseconds short_wait = std::max(kShortWait, settings.delay.worker_wait);
  if (early > Milliseconds(0) && early <= short_wait) return look_again(early);
  if (early > short_wait && (binding || early <= kMostClockDifference)) {
    owner.one_out_less();
    return put_back(std::move(delivery), early);
  }
  if (core::is_last_chance(message.counts) && leases.last_chances() > 0) {
    owner.one_out_less();
    message.note = "its worker died with it before, and another such job is running: one at a time";
    return put_back(std::move(delivery), kTurn + Milliseconds(static_cast<std::int64_t>(random.next() % 1000)));
  }
  grant(std::move(delivery));
}

void Consumer::State::grant(JobDelivery delivery) {
  JobMessage& message = delivery.message();
  stamps.saw(static_cast<std::int64_t>(message.token));
  message.token = std::max(static_cast<std::uint64_t>(stamps.next()), message.token + 1);

  Lease lease;
  lease.job = message.job;
  lease.token = message.token;
  lease.attempt = message.counts.total() + 1;
  lease.due = message.due_time();
  lease.counts = message.counts;
  lease.history = message.history;

  HeldLease held;
  held.owner = delivery.source->owner;
  held.token = lease.token;
  held.lease_until = steady_clock::now() + held.owner->options.lease;
  held.limit_until = steady_clock::now() + message.job.time_limit;
  held.held_since = delivery.arrived;
  held.last_chance = core::is_last_chance(message.counts);
  settled.leased_again(message.job.id);
  held.delivery = std::move(delivery);
  leases.add(std::move(held)).owner->granted.push_back(std::move(lease));
  count<&Stats::leased>();
}

// The server has taken back what was out: on one channel, or (null) on all of them. A lease that is being settled waits
// for its confirms, to say how it ended.
void Consumer::State::forget_deliveries(const Source* only) {
  const auto gone = [only](const JobDelivery& delivery) { return only == nullptr || delivery.source.get() == only; };
  std::erase_if(doubtful, [&](const auto& entry) { return gone(entry.second); });
  for (std::vector<JobDelivery>* deliveries : {&to_check, &checking}) {
    std::erase_if(*deliveries, [&](const JobDelivery& delivery) {
      if (gone(delivery)) delivery.source->owner->one_out_less();
      return gone(delivery);
    });
  }
  const auto lost = leases.which([&](const HeldLease& lease) {
    return gone(lease.delivery) && lease.state == HeldLease::State::kOut && !lease.delivery.detached;
  });
  for (const JobId& id : lost) release(id);
}

// This process lives, so no job has killed it: what was handed out counts as lost, what was not does not count.
void Consumer::State::write_interrupted(const Source* only) {
  if (!settings.notices || stopping) return;
  std::vector<Notice> notices;
  const auto add_notice = [&](Notice::Kind kind, const JobDelivery& delivery) {
    // One that the server has taken back before was told of then.
    if (delivery.detached || !valid(delivery) || (only != nullptr && delivery.source.get() != only)) return;
    if (notices.size() >= kMostInterrupted || delivery.message().published == 0) return;
    notices.push_back(notice_of(kind, delivery.message().job.id, delivery.message().published));
  };
  leases.which([&](const HeldLease& lease) {
    add_notice(Notice::Kind::kLost, lease.delivery);
    return false;
  });
  for (const auto& [channel, source] : sources) {
    for (const JobDelivery& delivery : source->buffer) add_notice(Notice::Kind::kSpare, delivery);
  }
  for (const std::vector<JobDelivery>* deliveries : {&to_check, &checking}) {
    for (const JobDelivery& delivery : *deliveries) add_notice(Notice::Kind::kSpare, delivery);
  }
  for (const auto& [when, delivery] : doubtful) add_notice(Notice::Kind::kSpare, delivery);
  log.write(std::move(notices));
}

// What nobody knows yet how to count is given back by the end of the connection, and does not count.
void Consumer::State::spare_unjudged() {
  std::vector<JobDelivery> unjudged = std::exchange(to_check, {});
  for (JobDelivery& delivery : std::exchange(checking, {})) unjudged.push_back(std::move(delivery));
  for (auto& [when, delivery] : std::exchange(doubtful, {})) unjudged.push_back(std::move(delivery));
  if (!settings.notices) return;
  std::vector<Notice> notices;
  for (const JobDelivery& delivery : unjudged) {
    if (!valid(delivery) || delivery.message().published == 0) continue;
    notices.push_back(notice_of(Notice::Kind::kSpare, delivery.message().job.id, delivery.message().published));
  }
  log.write(std::move(notices));
}

}  // namespace bide::brokers::rabbitmq
