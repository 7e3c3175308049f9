// From a lease to an acknowledgement. The original leaves its queue only when what takes its place is confirmed.

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "brokers/rabbitmq/consumer_state.h"
#include "brokers/rabbitmq/job_message.h"
#include "core/job_rules.h"
#include "core/retry_decision.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr Milliseconds kTryAgain{1000};
// Tokens are stamps; what lies outside of these was never one.
constexpr std::uint64_t kEarliestToken = 1'500'000'000'000'000;
constexpr std::uint64_t kTokenSlack = 600'000'000;

Error lease_lost(const JobId& id) {
  return {ErrorCode::kLeaseLost,
          "the lease of job " + id.to_string() + " is lost: another attempt has it, or it is finished"};
}

// Otherwise there is a next copy of the job.
bool ends_job(const Outcome& outcome) {
  return std::holds_alternative<Done>(outcome) || std::holds_alternative<Dead>(outcome);
}

}  // namespace

Status Consumer::State::lost_or_unknown(const LeaseRef& lease, const Outcome& outcome) const {
  if (settled.knows(lease)) {
    return settled.ended_with(lease, outcome.index()) ? Status() : Status(lease_lost(lease.id));
  }
  const auto now_us = static_cast<std::uint64_t>(platform::real_clock().now().wall_us);
  // The server cannot say whether there is such a job. A token that somebody may have been given is a lost one.
  if (lease.token >= kEarliestToken && lease.token <= now_us + kTokenSlack) return lease_lost(lease.id);
  return Error{ErrorCode::kNotFound, "there is no lease of a job " + lease.id.to_string()};
}

void Consumer::State::settle(Settlement settlement, std::function<void(Status)> answer) {
  const LeaseRef ref = settlement.lease;
  if (!leases.contains(ref.id)) return answer(lost_or_unknown(ref, settlement.outcome));
  HeldLease* const held = leases.find(ref);
  if (held == nullptr) return answer(lease_lost(ref.id));
  if (held->state == HeldLease::State::kSettling) {
    if (held->outcome != settlement.outcome.index()) return answer(lease_lost(ref.id));
    return held->waiting.push_back(std::move(answer));
  }
  held->outcome = settlement.outcome.index();

  Result<std::vector<Publication>> publications = publish_effects(*held, std::move(settlement.effects));
  if (!publications) return answer(publications.error());
  const JobMessage& message = held->delivery.message();
  Outcome outcome = std::move(settlement.outcome);
  if (!ends_job(outcome) && log.board().is_cancelled(ref.id, message.generation)) outcome = Done{};
  Departure departure;
  if (!std::holds_alternative<Done>(outcome)) {
    Result<Departure> asked =
        dialect.depart(held->delivery.job, outcome, stamp_after(message, outcome), now());
    if (!asked) return answer(asked.error());
    departure = std::move(*asked);
  }
  if (const Done* const done = std::get_if<Done>(&outcome)) {
    if (std::optional<Publication> reply = dialect.reply(held->delivery.job, *done)) publications->push_back(std::move(*reply));
  }
  if (departure.replacement) publications->push_back(*std::exchange(departure.replacement, std::nullopt));
  held->waiting.push_back(std::move(answer));
  if (publications->empty()) return finish(ref, ends_job(outcome), departure, Status());
  held->state = HeldLease::State::kSettling;
  held->copy = begin_copy(held->delivery, held->owner);
  publish_all(std::move(*publications), [this, ref, ends = ends_job(outcome), departure](Status status) {
    finish(ref, ends, departure, std::move(status));
  });
}

Result<std::vector<Publication>> Consumer::State::publish_effects(HeldLease& lease, std::vector<Job> effects) {
  const Time moment = now();
  std::vector<Publication> publications;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    Job& effect = effects[i];
    const auto wrong = [&](const Error& error) {
      return Error{error.code, "effect " + std::to_string(i + 1) + ": " + error.message};
    };
    if (Status valid_job = check_job(effect, moment); !valid_job) return wrong(valid_job.error());
    if (Status kept = core::check_kept(effect, {.past = true}); !kept) return wrong(kept.error());
    if (i >= lease.effects.size()) {
      lease.effects.emplace_back(ids.next(moment.time_since_epoch().count(), random.next()), stamps.next());
    }
    auto& [id, stamp] = lease.effects[i];
    if (effect.id.is_nil()) effect.id = id;
    if (log.board().is_purged(effect.queue, stamp)) stamp = stamps.next();
    Result<Publication> publication = dialect.enqueue(std::move(effect), stamp, moment);
    if (!publication) return wrong(publication.error());
    publications.push_back(std::move(*publication));
  }
  return publications;
}

// Of the copy, or of the dead job.
std::int64_t Consumer::State::stamp_after(const JobMessage& message, const Outcome& outcome) {
  return ends_job(outcome) ? stamps.next() : settled.stamp_of_copy(message, log.board());
}

// `done` runs on the consumer's thread, once, with the first thing that went wrong. When others of them were written,
// it is not true that nothing was done.
void Consumer::State::publish_all(std::vector<Publication> publications, std::function<void(Status)> done) {
  // What takes the place of something must not be given up while it is perhaps being written: it would be there twice.
  for (Publication& publication : publications) publication.patient = true;
  publisher.publish(std::move(publications), [done, queue = tasks](const std::vector<Status>& statuses) {
    Status first;
    bool written = false;
    for (const Status& status : statuses) {
      written = written || status || status.error().code == ErrorCode::kUnconfirmed;
      if (!status && first) first = status;
    }
    if (!first && written) first = unconfirmed(first.error());
    queue->post([first, done] { done(first); });
  });
}

// What was published for it is confirmed, or not.
void Consumer::State::finish(const LeaseRef& lease, bool ends, const Departure& departure, Status status) {
  HeldLease* const held = leases.find(lease);
  platform::require(held != nullptr, "a lease that is being settled stays");
  if (held->copy != nullptr) copies.end(*std::exchange(held->copy, nullptr));
  std::vector<std::function<void(Status)>> all = std::exchange(held->waiting, {});
  if (!status && valid(held->delivery)) {
    // Nothing has changed: whoever has the lease may try again, or let it go.
    held->state = HeldLease::State::kOut;
    held->lease_until = steady_clock::now() + held->owner->options.lease;
    leases.watch(lease.id, *held);
    for (const auto& one : all) one(status);
    return;
  }
  // Of another system: delivered again it is not recognised, so it runs again.
  const bool is_back = !valid(held->delivery) && held->delivery.message().published == 0;
  if (!status || is_back) {
    release(lease.id);
    for (const auto& one : all) one(lease_lost(lease.id));
    return;
  }
  // When the channel is gone the server delivers the original again; here it is known that it is settled. A job that
  // ends here ends with the copies that earlier tries to settle it may have left behind.
  const JobDelivery delivery = std::move(held->delivery);
  const JobMessage& message = delivery.message();
  settled.add(message, lease.token, held->outcome, ends ? settled.last_copy_of(message) : message.published);
  if (!ends && departure.due) settled.copy_is_due(message, *departure.due);
  release(lease.id);
  leave(delivery, departure);
  for (auto& one : all) answers.push_back(std::move(one));
}

// After the acknowledgements have been written. Should they be lost on their way, the jobs are delivered once more:
// here they are recognised, elsewhere they run again.
void Consumer::State::answer_settled() {
  for (const auto& answer : std::exchange(answers, {})) answer(Status());
}

Extended Consumer::State::extend(const LeaseRef& lease) {
  HeldLease* const held = leases.find(lease);
  if (held == nullptr) return {.lost = true};
  held->lease_until = steady_clock::now() + held->owner->options.lease;
  return {.lost = false,
          .cancel_requested = log.board().is_cancelled(lease.id, held->delivery.message().generation)};
}

// The worker has fallen silent, or has run into the time limit: the same as if it had said so itself.
void Consumer::State::expire_leases() {
  const Steady moment = steady_clock::now();
  for (const JobId& id : leases.expired(moment)) {
    HeldLease* const held = leases.find(id);
    if (held == nullptr) continue;
    const Fault fault = held->limit_until <= moment ? Fault::kTimedOut : Fault::kLost;
    JobDelivery delivery = std::move(held->delivery);
    release(id);
    if (fault == Fault::kLost) count<&Stats::lost_leases>();
    const std::string text = fault == Fault::kLost ? "the worker fell silent: the lease was not extended in time"
                                                   : "the attempt ran into its time limit";
    const JobMessage& message = delivery.message();
    Outcome outcome = core::decide_after_fault(message.job.retry, message.counts, fault, text, random.next());
    depart(std::move(delivery), std::move(outcome));
  }
}

std::shared_ptr<UnconfirmedCopies::Copy> Consumer::State::begin_copy(const JobDelivery& delivery,
                                                                     std::shared_ptr<Subscriber> owner) {
  return copies.begin(delivery.message().job.body.size(), steady_clock::now(),
                           [source = delivery.source, owner = std::move(owner)](int by) {
                             source->stalled += by;
                             if (owner != nullptr) owner->stalled += by;
                             platform::require(source->stalled >= 0 && (owner == nullptr || owner->stalled >= 0),
                                               "a stalled copy is counted once");
                           });
}

void Consumer::State::release(const JobId& id) {
  HeldLease gone = leases.remove(id);
  for (JobDelivery& duplicate : gone.duplicates) {
    duplicate.source->owner->out += 1;
    to_check.push_back(std::move(duplicate));
  }
}

void Consumer::State::leave(const JobDelivery& delivery, const Departure& departure) {
  if (!valid(delivery)) return;
  if (delivery.detached) {
    return log.write({notice_of(Notice::Kind::kOver, delivery.message().job.id, delivery.message().published)});
  }
  Source& source = *delivery.source;
  if (departure.way == Departure::Way::kRequeue && departure.wait > Milliseconds(0)) {
    // The server would deliver it again at once; so it is kept for as long as nobody is to have it.
    return timers.after(departure.wait, [this, delivery] { leave(delivery, {.way = Departure::Way::kRequeue}); });
  }
  source.consumers.settled(delivery.consumer);
  if (departure.way == Departure::Way::kAcknowledge) return source.acks.settle(delivery.tag);
  source.acks.leave_out(delivery.tag);
  source.last_ack = steady_clock::now();
  const bool requeue = departure.way == Departure::Way::kRequeue;
  if (Status sent = connection->nack(source.channel, delivery.tag, false, requeue); !sent) lose(sent.error());
}

void Consumer::State::depart(JobDelivery delivery, Outcome outcome) {
  if (!valid(delivery)) return;
  const JobMessage& message = delivery.message();
  if (log.board().is_cancelled(message.job.id, message.generation)) return acknowledge(delivery);
  Result<Departure> departure = dialect.depart(delivery.job, outcome, stamp_after(message, outcome), now());
  if (!departure) {
    auto both = std::make_shared<std::pair<JobDelivery, Outcome>>(std::move(delivery), std::move(outcome));
    return timers.after(kTryAgain, [this, both] { depart(std::move(both->first), std::move(both->second)); });
  }
  if (!departure->replacement) return leave(delivery, *departure);
  replace(std::move(delivery), std::move(*departure->replacement), ends_job(outcome));
}

// Unchanged but for what is in the message already.
void Consumer::State::put_back(JobDelivery delivery, Milliseconds wait) {
  // The copy is delivered for the first time.
  const Ends ends = ends_of(delivery);
  JobMessage& message = delivery.message();
  message.counts.crashed += ends.crashed;
  message.counts.lost += ends.lost;
  delivery.job.deliveries = 0;
  Returned outcome{.after = wait, .note = message.note};
  depart(std::move(delivery), std::move(outcome));
}

// The copy first, then the acknowledgement; again and again, until one of them is impossible. `ends`: no copy of the job
// is left.
void Consumer::State::replace(JobDelivery delivery, Publication publication, bool ends) {
  if (!valid(delivery)) return;
  ++replacing;
  const JobId id = delivery.message().job.id;
  const std::int64_t published = delivery.message().published;
  replaced[id] = std::max(replaced[id], published);
  const std::shared_ptr<UnconfirmedCopies::Copy> copy = begin_copy(delivery, nullptr);
  auto both = std::make_shared<std::pair<JobDelivery, Publication>>(std::move(delivery), publication);
  std::vector<Publication> one;
  one.push_back(std::move(publication));
  publish_all(std::move(one), [this, both, copy, id, published, ends](const Status& status) {
    --replacing;
    copies.end(*copy);
    if (const auto mark = replaced.find(id); mark != replaced.end() && mark->second == published) replaced.erase(mark);
    const JobDelivery& original = both->first;
    if (status) {
      // Should the acknowledgement be lost, it comes once more; it must not be replaced once more.
      settled.add(original.message(), ends ? settled.last_copy_of(original.message()) : published);
      return acknowledge(original);
    }
    // What cannot be written again (its headers are too long) is passed on by the server itself.
    if (status.error().code == ErrorCode::kInvalidArgument && dialect.keeps_rejected() && !original.detached) {
      return leave(original, {.way = Departure::Way::kReject});
    }
    if (!stopping) replace_later(both, ends);
  });
}

// The same message may be in the queue twice, and the other one may be taken and settled in the meantime.
void Consumer::State::replace_later(std::shared_ptr<std::pair<JobDelivery, Publication>> both, bool ends) {
  timers.after(kTryAgain, [this, both, ends] {
    const JobMessage& message = both->first.message();
    if (settled.is_over(message)) {
      count<&Stats::repeated_acks>();
      return acknowledge(both->first);
    }
    if (leases.contains(message.job.id)) return replace_later(both, ends);
    replace(std::move(both->first), std::move(both->second), ends);
  });
}

}  // namespace bide::brokers::rabbitmq
