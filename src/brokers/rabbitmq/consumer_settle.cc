// From a lease to an acknowledgement. The original is acknowledged only when what takes its place is confirmed.

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/consumer_state.h"
#include "core/job_rules.h"
#include "core/retry_decision.h"
#include "platform/clock.h"
#include "platform/fatal.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t kRemembered = 65'536;
constexpr Milliseconds kTryAgain{1000};
// A replacement that the server has not taken by then does not count against the credit any more, as long as there are
// not too many of them.
constexpr Milliseconds kStalled{200};
constexpr int kMostStalled = 10'000;
constexpr std::size_t kMostStalledBytes = 64 * 1024 * 1024;
// Tokens are stamps; what lies outside of these was never one.
constexpr std::uint64_t kEarliestToken = 1'500'000'000'000'000;
constexpr std::uint64_t kTokenSlack = 600'000'000;

Error lease_lost(const JobId& id) {
  return {ErrorCode::kLeaseLost,
          "the lease of job " + id.to_string() + " is lost: another attempt has it, or it is finished"};
}

}  // namespace

Status Consumer::State::lost_or_unknown(const LeaseRef& lease, const Outcome& outcome) const {
  const auto known = settled.find(lease.id);
  if (known != settled.end() && lease.token != 0 && known->second.token == lease.token) {
    return known->second.outcome == outcome.index() ? Status() : Status(lease_lost(lease.id));
  }
  const auto now_us = static_cast<std::uint64_t>(platform::real_clock().now().wall_us);
  // The server cannot say whether there is such a job. A token that somebody may have been given is a lost one.
  if (lease.token >= kEarliestToken && lease.token <= now_us + kTokenSlack) return lease_lost(lease.id);
  return Error{ErrorCode::kNotFound, "there is no lease of a job " + lease.id.to_string()};
}

void Consumer::State::settle(Settlement settlement, std::function<void(Status)> answer) {
  const JobId id = settlement.lease.id;
  const auto found = held.find(id);
  if (found == held.end()) return answer(lost_or_unknown(settlement.lease, settlement.outcome));
  Held& entry = found->second;
  if (entry.token != settlement.lease.token) return answer(lease_lost(id));
  if (entry.state == Held::State::kSettling) {
    if (entry.outcome != settlement.outcome.index()) return answer(lease_lost(id));
    return entry.waiting.push_back(std::move(answer));
  }
  entry.outcome = settlement.outcome.index();

  const Time moment = now();
  std::vector<Publication> publications;
  for (std::size_t i = 0; i < settlement.effects.size(); ++i) {
    Job& effect = settlement.effects[i];
    if (Status valid = check_job(effect, moment); !valid) {
      return answer(Error{valid.error().code, "effect " + std::to_string(i + 1) + ": " + valid.error().message});
    }
    if (i >= entry.effects.size()) {
      entry.effects.emplace_back(ids.next(moment.time_since_epoch().count(), random.next()), stamps.next());
    }
    auto& [effect_id, stamp] = entry.effects[i];
    if (effect.id.is_nil()) effect.id = effect_id;
    if (board.is_purged(effect.queue, stamp)) stamp = stamps.next();
    publications.push_back(first_publication(std::move(effect), stamp, moment));
  }

  const JobMessage& message = entry.parcel.message;
  const bool cancelled = board.is_cancelled(id, message.generation);
  // A job that ends here ends with the copies that earlier tries to settle it may have left behind.
  std::int64_t over = last_copy_of(message);
  if (RetryAt* retry = std::get_if<RetryAt>(&settlement.outcome); retry != nullptr && !cancelled) {
    JobMessage copy = message;
    if (retry->body) copy.job.body = std::move(*retry->body);
    record_fault(copy, retry->fault, retry->error, moment);
    const Milliseconds wait = std::max(Milliseconds(0), retry->after);
    copy.due = moment + wait;
    copy.due_by_wall_clock = false;
    copy.note.clear();
    publications.push_back(to_ready(std::move(copy), wait));
    over = message.published;
  } else if (Returned* returned = std::get_if<Returned>(&settlement.outcome); returned != nullptr && !cancelled) {
    JobMessage copy = message;
    const Milliseconds wait = std::max(Milliseconds(0), returned->after);
    if (wait > Milliseconds(0)) copy.due = moment + wait;
    copy.note = std::move(returned->note);
    publications.push_back(to_ready(std::move(copy), wait));
    over = message.published;
  } else if (const Dead* dead = std::get_if<Dead>(&settlement.outcome)) {
    JobMessage copy = message;
    record_fault(copy, dead->fault, dead->error, moment);
    publications.push_back(to_dead(std::move(copy), dead->reason));
  }

  if (publications.empty()) {
    acknowledge(entry.parcel);
    remember(id, entry, over);
    answers.push_back(std::move(answer));
    release(found);
    return;
  }
  entry.state = Held::State::kSettling;
  entry.replacement = begin_replacement(entry.parcel, entry.owner);
  entry.waiting.push_back(std::move(answer));
  publish_all(std::move(publications), [this, id, token = entry.token, over](Status status) {
    finish(id, token, over, std::move(status));
  });
}

// `done` runs on the consumer's thread, once, with the first thing that went wrong. When others of them were written,
// it is not true that nothing was done.
void Consumer::State::publish_all(std::vector<Publication> publications, std::function<void(Status)> done) {
  struct Batch {
    std::size_t missing;
    Status status;
    bool written = false;
  };
  auto batch = std::make_shared<Batch>(Batch{publications.size(), {}});
  for (Publication& publication : publications) {
    // What takes the place of something must not be given up while it is perhaps being written: it would be there
    // twice.
    publication.patient = true;
    publication.done = [batch, done, weak = weak_from_this()](Status status) {
      batch->written = batch->written || status || status.error().code == ErrorCode::kUnconfirmed;
      if (!status && batch->status) batch->status = std::move(status);
      if (--batch->missing > 0) return;
      if (!batch->status && batch->written) batch->status = unconfirmed(batch->status.error());
      if (const auto state = weak.lock()) state->letters.post([batch, done] { done(std::move(batch->status)); });
    };
  }
  publisher.publish(std::move(publications));
}

// `over`: copies up to this one, when all went well.
void Consumer::State::finish(JobId id, std::uint64_t token, std::int64_t over, Status status) {
  const auto found = held.find(id);
  platform::require(found != held.end() && found->second.token == token, "a lease that is being settled stays");
  Held& entry = found->second;
  end_replacement(*std::exchange(entry.replacement, nullptr));
  std::vector<std::function<void(Status)>> all = std::exchange(entry.waiting, {});
  if (!status && valid(entry.parcel)) {
    // Nothing has changed: whoever has the lease may try again, or let it go.
    entry.state = Held::State::kOut;
    entry.lease_until = steady_clock::now() + entry.owner->options.lease;
    watch_lease(id, token, entry.lease_until);
    for (const auto& one : all) one(status);
    return;
  }
  if (!status) {
    release(found);
    for (const auto& one : all) one(lease_lost(id));
    return;
  }
  // When the channel is gone the server delivers the original again; here it is known that it is settled.
  acknowledge(entry.parcel);
  remember(id, entry, over);
  release(found);
  for (auto& one : all) answers.push_back(std::move(one));
}

// After the acknowledgements have been written. Should they be lost on their way, the jobs are delivered once more:
// here they are recognised, elsewhere they run again.
void Consumer::State::answer_settled() {
  for (const auto& answer : std::exchange(answers, {})) answer(Status());
}

Extended Consumer::State::extend(const LeaseRef& lease) {
  const auto found = held.find(lease.id);
  if (found == held.end() || found->second.token != lease.token) return {.lost = true};
  Held& entry = found->second;
  entry.lease_until = steady_clock::now() + entry.owner->options.lease;
  return {.lost = false, .cancel_requested = board.is_cancelled(lease.id, entry.parcel.message.generation)};
}

void Consumer::State::watch_lease(const JobId& id, std::uint64_t token, Steady until) {
  deadlines.push({until, id, token});
}

void Consumer::State::expire_leases() {
  const Steady moment = steady_clock::now();
  while (!deadlines.empty() && deadlines.top().when <= moment) {
    const Deadline deadline = deadlines.top();
    deadlines.pop();
    const auto found = held.find(deadline.id);
    if (found == held.end() || found->second.token != deadline.token) continue;
    Held& entry = found->second;
    const Steady until = std::min(entry.lease_until, entry.limit_until);
    if (until > moment) {
      deadlines.push({until, deadline.id, deadline.token});
      continue;
    }
    if (entry.state == Held::State::kSettling) continue;  // Watched again when that fails.
    end_attempt(found, entry.limit_until <= moment ? Fault::kTimedOut : Fault::kLost);
  }
}

std::shared_ptr<Replacement> Consumer::State::begin_replacement(const Parcel& parcel,
                                                                std::shared_ptr<Subscriber> owner) {
  auto replacement = std::make_shared<Replacement>();
  replacement->source = parcel.source;
  replacement->owner = std::move(owner);
  replacement->bytes = parcel.message.job.body.size();
  replacement->stalled_from = steady_clock::now() + kStalled;
  recent.push_back(replacement);
  return replacement;
}

void Consumer::State::end_replacement(Replacement& replacement) {
  platform::require(!replacement.over, "a replacement is answered once");
  replacement.over = true;
  if (std::exchange(replacement.stalled, false)) count_stalled(replacement, -1);
}

// Whatever the server does not take, what publishes nothing goes on: otherwise a worker whose credit is used up by
// retries that cannot be published would stop.
void Consumer::State::find_stalled() {
  const Steady moment = steady_clock::now();
  for (; !recent.empty() && (recent.front()->over || recent.front()->stalled_from <= moment); recent.pop_front()) {
    Replacement& replacement = *recent.front();
    if (replacement.over || stalled >= kMostStalled || stalled_bytes > kMostStalledBytes) continue;
    replacement.stalled = true;
    count_stalled(replacement, 1);
  }
}

void Consumer::State::count_stalled(const Replacement& replacement, int by) {
  stalled += by;
  stalled_bytes = by > 0 ? stalled_bytes + replacement.bytes : stalled_bytes - replacement.bytes;
  replacement.source->stalled += by;
  if (replacement.owner != nullptr) replacement.owner->stalled += by;
  platform::require(stalled >= 0 && replacement.source->stalled >= 0, "a stalled replacement is counted once");
}

// The worker has fallen silent, or has run into the time limit: the same as if it had said so itself.
void Consumer::State::end_attempt(platform::KeyedMap<JobId, Held>::iterator found, Fault fault) {
  Parcel parcel = std::move(found->second.parcel);
  JobMessage& message = parcel.message;
  const JobId id = found->first;
  release(found);
  if (fault == Fault::kLost) count<&Stats::lost_leases>();
  if (!valid(parcel)) return;
  if (board.is_cancelled(id, message.generation)) return acknowledge(parcel);
  const std::string text = fault == Fault::kLost ? "the worker fell silent: the lease was not extended in time"
                                                 : "the attempt ran into its time limit";
  const Outcome outcome = core::decide_after_fault(message.job.retry, message.counts, fault, text, random.next());
  const Time moment = now();
  record_fault(message, fault, text, moment);
  if (const Dead* dead = std::get_if<Dead>(&outcome)) return bury(std::move(parcel), dead->reason);
  const Milliseconds wait = std::get<RetryAt>(outcome).after;
  put_back(std::move(parcel), wait, moment + wait);
}

void Consumer::State::acknowledge(const Parcel& parcel) {
  if (!valid(parcel)) return;
  parcel.source->acks.settle(parcel.tag);
  parcel.source->consumers.settled(parcel.consumer);
}

Settled& Consumer::State::memory_of(const JobId& id) {
  const auto [known, is_new] = settled.try_emplace(id);
  if (is_new) settled_order.push_back(id);
  while (settled_order.size() > kRemembered) {
    settled.erase(settled_order.front());
    settled_order.pop_front();
  }
  return known->second;
}

void Consumer::State::remember(const JobId& id, std::int64_t published) {
  Settled& known = memory_of(id);
  known.published = std::max(known.published, published);
}

void Consumer::State::remember(const JobId& id, const Held& entry, std::int64_t published) {
  remember(id, published);
  Settled& known = memory_of(id);
  known.token = entry.token;
  known.outcome = entry.outcome;
}

bool Consumer::State::is_over(const JobId& id, std::int64_t published) const {
  const auto known = settled.find(id);
  return known != settled.end() && published > 0 && published <= known->second.published;
}

// Of what takes the place of this message, however often that is tried. A copy that was refused, or whose answer was
// lost, may have been written all the same (a server between two leaders refuses what it has); when the next one has
// the same stamp, whichever arrives later is recognised.
std::int64_t Consumer::State::stamp_of_copy(const JobMessage& message) {
  if (message.published == 0) return stamps.next();
  Settled& known = memory_of(message.job.id);
  if (known.original != message.published || board.is_purged(message.job.queue, known.copy)) {
    known.original = message.published;
    known.copy = stamps.next();
  }
  return known.copy;
}

std::int64_t Consumer::State::last_copy_of(const JobMessage& message) const {
  const auto known = settled.find(message.job.id);
  const bool has_copy = known != settled.end() && message.published > 0 && known->second.original == message.published;
  return has_copy ? known->second.copy : message.published;
}

void Consumer::State::release(platform::KeyedMap<JobId, Held>::iterator entry) {
  Held gone = std::move(entry->second);
  held.erase(entry);
  gone.owner->out -= 1;
  gone.owner->leased -= 1;
  last_chances -= gone.last_chance ? 1 : 0;
  for (Parcel& twin : gone.twins) {
    twin.source->owner->out += 1;
    to_check.push_back(std::move(twin));
  }
}

Publication Consumer::State::to_ready(JobMessage message, Milliseconds wait) {
  message.published = stamp_of_copy(message);
  Publication publication;
  publication.to = {.kind = Destination::Kind::kReady, .name = message.job.queue, .key = {}, .delay = wait};
  publication.message = encode(std::move(message));
  return publication;
}

Publication Consumer::State::to_dead(JobMessage message, DeadReason reason) {
  message.published = message.dead_at = stamps.next();
  message.dead = reason;
  Publication publication;
  publication.to = {.kind = Destination::Kind::kDead, .name = message.job.queue, .key = {}, .delay = Milliseconds(0)};
  publication.message = encode(std::move(message));
  if (settings.dead_retention > Milliseconds(0)) {
    publication.message.expiration = std::to_string(settings.dead_retention.count());
  }
  return publication;
}

// What cannot be written again by us (its headers are too long) is passed on by the server itself, to the lost ones.
void Consumer::State::reject(const Parcel& parcel) {
  if (!valid(parcel) || connection == nullptr) return;
  parcel.source->acks.leave_out(parcel.tag);
  parcel.source->consumers.settled(parcel.consumer);
  if (Status sent = connection->nack(parcel.source->channel, parcel.tag, false, false); !sent) lose(sent.error());
}

// The copy first, then the acknowledgement; again and again, until one of them is impossible.
void Consumer::State::replace(Parcel parcel, Publication publication) {
  if (!valid(parcel)) return;
  ++replacing;
  const JobId id = parcel.message.job.id;
  const std::int64_t published = parcel.message.published;
  replaced[id] = std::max(replaced[id], published);
  const std::shared_ptr<Replacement> replacement = begin_replacement(parcel, nullptr);
  auto both = std::make_shared<std::pair<Parcel, Publication>>(std::move(parcel), publication);
  std::vector<Publication> one;
  one.push_back(std::move(publication));
  publish_all(std::move(one), [this, both, replacement, id, published](Status status) {
    --replacing;
    end_replacement(*replacement);
    if (const auto mark = replaced.find(id); mark != replaced.end() && mark->second == published) replaced.erase(mark);
    const Parcel& original = both->first;
    if (status) {
      // Should the acknowledgement be lost, it comes once more; it must not be replaced once more.
      acknowledge(original);
      const bool ends = both->second.to.kind == Destination::Kind::kDead;
      remember(id, ends ? last_copy_of(original.message) : published);
      return;
    }
    if (status.error().code == ErrorCode::kInvalidArgument) return reject(original);
    if (!stopping) replace_later(both);
  });
}

// The same message may be in the queue twice, and the other one may be taken and settled in the meantime.
void Consumer::State::replace_later(std::shared_ptr<std::pair<Parcel, Publication>> both) {
  after(kTryAgain, [this, both] {
    const JobMessage& message = both->first.message;
    if (is_over(message.job.id, message.published)) {
      count<&Stats::repeated_acks>();
      return acknowledge(both->first);
    }
    if (held.contains(message.job.id)) return replace_later(both);
    replace(std::move(both->first), std::move(both->second));
  });
}

void Consumer::State::bury(Parcel parcel, DeadReason reason) {
  Publication publication = to_dead(parcel.message, reason);
  replace(std::move(parcel), std::move(publication));
}

// Unchanged but for what is in the message already. Without a due time it keeps the one it has.
void Consumer::State::put_back(Parcel parcel, Milliseconds wait, std::optional<Time> due) {
  JobMessage copy = parcel.message;
  // The copy is delivered for the first time.
  const Ends ends = ends_of(parcel);
  copy.counts.crashed += ends.crashed;
  copy.counts.lost += ends.lost;
  parcel.deliveries = 0;
  if (due) copy.due = due;
  Publication publication = to_ready(std::move(copy), wait);
  replace(std::move(parcel), std::move(publication));
}

}  // namespace bide::brokers::rabbitmq
