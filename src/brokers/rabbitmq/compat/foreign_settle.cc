// From a lease to an acknowledgement. The original leaves only when what takes its place is confirmed.

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/compat/foreign_state.h"
#include "brokers/rabbitmq/publications.h"
#include "core/retry_decision.h"
#include "platform/keyed_hash.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t kRemembered = 65'536;
constexpr Milliseconds kTryAgain{1000};

Error lease_lost(const JobId& id) {
  return {ErrorCode::kLeaseLost,
          "the lease of job " + id.to_string() + " is lost: another attempt has it, or it is finished"};
}

}  // namespace

Status ForeignConsumer::State::lost_or_settled(const Settlement& settlement) const {
  const auto known = settled.find(settlement.lease.id);
  const std::pair same{settlement.lease.token, settlement.outcome.index()};
  if (known != settled.end() && known->second == same) return {};
  return lease_lost(settlement.lease.id);
}

void ForeignConsumer::State::settle(Settlement settlement, std::function<void(Status)> answer) {
  const JobId id = settlement.lease.id;
  const auto found = held.find(id);
  if (found == held.end()) return answer(lost_or_settled(settlement));
  Held& entry = found->second;
  if (entry.token != settlement.lease.token) return answer(lease_lost(id));
  if (entry.state == Held::State::kSettling) {
    if (entry.outcome != settlement.outcome.index()) return answer(lease_lost(id));
    return entry.also_waiting.push_back(std::move(answer));
  }
  entry.outcome = settlement.outcome.index();

  const std::uint64_t token = entry.token;
  const Returned* returned = std::get_if<Returned>(&settlement.outcome);
  const Milliseconds wait = returned == nullptr ? Milliseconds(0) : std::max(Milliseconds(0), returned->after);
  Ending ending = Ending::kAcknowledge;
  entry.state = Held::State::kSettling;
  Result<std::vector<Publication>> publications = plan(entry, settlement, ending);
  if (!publications) {
    if (connection != nullptr && !connection->alive()) lose(publications.error());
    const auto still = held.find(id);
    if (still == held.end() || still->second.token != token) return answer(lease_lost(id));
    if (!valid(still->second.parcel)) {
      release(still);
      return answer(lease_lost(id));
    }
    still->second.state = Held::State::kOut;
    watch(id, still->second);
    return answer(publications.error());
  }
  if (publications->empty()) return finish(id, token, ending, wait, Status(), answer);
  publish_all(std::move(*publications), [this, id, token, ending, wait, answer = std::move(answer)](Status status) {
    finish(id, token, ending, wait, std::move(status), answer);
  });
}

Result<std::vector<Publication>> ForeignConsumer::State::plan(Held& entry, Settlement& settlement, Ending& ending) {
  const Time moment = now();
  std::vector<Send> sends;
  for (std::size_t i = 0; i < settlement.effects.size(); ++i) {
    Job& effect = settlement.effects[i];
    const auto wrong = [&](const Error& error) {
      return Error{error.code, "effect " + std::to_string(i + 1) + ": " + error.message};
    };
    if (Status checked = check_job(effect, moment); !checked) return wrong(checked.error());
    if (i >= entry.effect_ids.size()) entry.effect_ids.push_back(new_id());
    if (effect.id.is_nil()) effect.id = entry.effect_ids[i];
    Result<Send> send = dialect.enqueue(effect, moment);
    if (!send) return wrong(send.error());
    sends.push_back(std::move(*send));
  }
  const ForeignJob& job = entry.parcel.job;
  if (const RetryAt* retry = std::get_if<RetryAt>(&settlement.outcome)) {
    Result<Departure> departure = dialect.retry(job, *retry, moment);
    if (!departure) return departure.error();
    if (departure->send)
      sends.push_back(std::move(*departure->send));
    else
      ending = Ending::kReject;
  } else if (const Dead* dead = std::get_if<Dead>(&settlement.outcome)) {
    sends.push_back(dialect.bury(job, *dead, moment));
  } else if (std::holds_alternative<Returned>(settlement.outcome)) {
    ending = Ending::kGiveBack;
  }

  std::vector<Publication> publications;
  for (Send& send : sends) {
    // By its id a message that no queue took is recognised.
    if (send.message.message_id.empty()) send.message.message_id = new_id().to_string();
    if (std::optional<Publication> ready = without_preparation(send)) {
      publications.push_back(std::move(*ready));
      continue;
    }
    if (connection == nullptr) return Error{ErrorCode::kUnavailable, trouble};
    Result<Publication> publication = topology.prepare(*connection, std::move(send));
    if (!publication) return publication.error();
    publications.push_back(std::move(*publication));
  }
  return publications;
}

// `done` runs on this thread, once, with the first thing that went wrong.
void ForeignConsumer::State::publish_all(std::vector<Publication> publications, std::function<void(Status)> done) {
  struct Batch {
    std::size_t missing;
    Status status;
    bool written = false;
  };
  auto batch = std::make_shared<Batch>(Batch{publications.size(), {}});
  for (Publication& publication : publications) {
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

void ForeignConsumer::State::finish(JobId id, std::uint64_t token, Ending ending, Milliseconds wait, Status status,
                                    const std::function<void(Status)>& answer) {
  const auto found = held.find(id);
  if (found == held.end() || found->second.token != token) return answer(lease_lost(id));
  Held& entry = found->second;
  std::vector<std::function<void(Status)>> all = std::exchange(entry.also_waiting, {});
  all.push_back(answer);
  const bool ours = valid(entry.parcel);
  if (!status && ours) {
    // Nothing has changed: whoever has the lease may try again, or let it go.
    entry.state = Held::State::kOut;
    entry.lease_until = steady_clock::now() + entry.owner->options.lease;
    watch(id, entry);
    for (const auto& one : all) one(status);
    return;
  }
  const Parcel parcel = std::move(entry.parcel);
  const std::size_t outcome = entry.outcome;
  release(found);
  bool left = ours;
  if (ours && ending == Ending::kGiveBack && wait > Milliseconds(0)) {
    // The server would deliver it again at once; so it is kept for as long as nobody is to have it.
    after(wait, [this, parcel] { leave(parcel, Ending::kGiveBack); });
  } else if (ours) {
    left = leave(parcel, ending);
  }
  if (status && left) {
    if (settled.insert_or_assign(id, std::pair(token, outcome)).second) settled_order.push_back(id);
    while (settled_order.size() > kRemembered) {
      settled.erase(settled_order.front());
      settled_order.pop_front();
    }
  }
  for (const auto& one : all) one(left ? Status() : Status(lease_lost(id)));
}

bool ForeignConsumer::State::leave(const Parcel& parcel, Ending ending) {
  if (!valid(parcel) || connection == nullptr) return false;
  const ChannelNumber channel = parcel.source->channel;
  const Status written = ending == Ending::kAcknowledge
                             ? connection->ack(channel, parcel.tag, false)
                             : connection->nack(channel, parcel.tag, false, ending == Ending::kGiveBack);
  if (!written) {
    lose(written.error());
    return false;
  }
  parcel.source->unsettled -= 1;
  close_when_empty(parcel.source);
  return true;
}

bool ForeignConsumer::State::extend(const LeaseRef& lease) {
  const auto found = held.find(lease.id);
  if (found == held.end() || found->second.token != lease.token) return false;
  found->second.lease_until = steady_clock::now() + found->second.owner->options.lease;
  return true;
}

void ForeignConsumer::State::watch(const JobId& id, const Held& entry) {
  deadlines.push({std::min(entry.lease_until, entry.limit_until), id, entry.token});
}

void ForeignConsumer::State::expire_leases() {
  const Steady moment = steady_clock::now();
  while (!deadlines.empty() && deadlines.top().when <= moment) {
    const Deadline deadline = deadlines.top();
    deadlines.pop();
    const auto found = held.find(deadline.id);
    if (found == held.end() || found->second.token != deadline.token) continue;
    Held& entry = found->second;
    if (std::min(entry.lease_until, entry.limit_until) > moment) {
      watch(deadline.id, entry);
      continue;
    }
    if (entry.state == Held::State::kSettling) continue;  // Watched again when that fails.
    const Fault fault = entry.limit_until <= moment ? Fault::kTimedOut : Fault::kLost;
    const std::string text = fault == Fault::kLost ? "the worker fell silent: the lease was not extended in time"
                                                   : "the attempt ran into its time limit";
    // From here on whoever had it has it no more.
    entry.token = static_cast<std::uint64_t>(stamps.next());
    entry.limit_until = entry.lease_until = Steady::max();
    const ForeignJob& job = entry.parcel.job;
    end_attempt(deadline.id, entry.token,
                core::decide_after_fault(job.job.retry, job.counts, fault, text, random.next()));
  }
}

// The same as if the worker had said so; again and again, until it is confirmed or the server has taken it back.
void ForeignConsumer::State::end_attempt(const JobId& id, std::uint64_t token, Outcome outcome) {
  settle({.lease = {id, token}, .outcome = outcome}, [this, id, token, outcome](const Status& status) {
    if (status || stopping || !held.contains(id)) return;
    const auto found = held.find(id);
    found->second.lease_until = Steady::max();
    after(kTryAgain, [this, id, token, outcome] { end_attempt(id, token, outcome); });
  });
}

void ForeignConsumer::State::release(platform::KeyedMap<JobId, Held>::iterator entry) {
  entry->second.owner->out -= 1;
  held.erase(entry);
}

}  // namespace bide::brokers::rabbitmq::compat
