// Subscriptions, their queues on the server, and the way from a delivery to a lease.

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/consumer_state.h"
#include "core/retry_decision.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr int kMostPrefetch = 65535;
constexpr int kLeastRoom = 16;
constexpr Milliseconds kAcksArrive{100};
constexpr Milliseconds kLostSoon{500};
constexpr Milliseconds kLostLater{5000};
// A queue that has used up its share takes over what others have left idle for so long.
constexpr Milliseconds kIdle{20};
// What arrives earlier than that by the clock of this machine is only rounding on its way; it waits here.
constexpr Milliseconds kShortWait{25};
constexpr Milliseconds kLookAgain{100};
constexpr Milliseconds kWordTakes{2000};
// Before a job that has one life left is looked at again, when another such job is running here.
constexpr Milliseconds kTurn{1000};

}  // namespace

void Consumer::State::add(std::shared_ptr<Subscriber> subscriber) {
  wanted = true;
  for (const QueueShare& share : subscriber->options.queues) {
    auto source = std::make_shared<Source>();
    source->owner = subscriber;
    source->queue = share.name;
    source->weight = share.weight;
    subscriber->sources.push_back(std::move(source));
  }
  subscriber->starved_since = steady_clock::now();
  subscribers.push_back(std::move(subscriber));
}

void Consumer::State::end(const std::shared_ptr<Subscriber>& subscriber) {
  if (std::exchange(subscriber->ended, true)) return;
  if (subscriber->started) std::exchange(subscriber->started, nullptr)(Status());
  std::erase(subscribers, subscriber);
  // Not handed out yet, so nobody will settle them.
  for (const Lease& lease : std::exchange(subscriber->granted, {})) {
    const auto found = held.find(lease.job.id);
    if (found == held.end() || found->second.token != lease.token) continue;
    Parcel parcel = std::move(found->second.parcel);
    release(found);
    if (valid(parcel)) put_back(std::move(parcel), Milliseconds(0), std::nullopt);
  }
  for (const auto& source : subscriber->sources) {
    stop(source);
    close_when_empty(source);
  }
}

void Consumer::State::set_credit(const std::shared_ptr<Subscriber>& subscriber, int credit) {
  if (subscriber->ended) return;
  subscriber->credit = std::clamp(credit, 0, 1'000'000);
  for (const auto& source : subscriber->sources) source->extra = 0;
  if (connection != nullptr) tend_sources();
}

void Consumer::State::set_delivery_limit(const std::shared_ptr<Subscriber>& subscriber, std::uint64_t deliveries) {
  if (subscriber->ended) return;
  subscriber->delivery_limit = deliveries;
  for (const auto& source : subscriber->sources) source->extra = 0;
  if (connection != nullptr) tend_sources();
}

// The server needs a limit for each consumer: every queue has its share of the credit, but never nothing.
int Consumer::State::wanted_prefetch(const Source& source) const {
  const Subscriber& owner = *source.owner;
  if (owner.ended || owner.credit_now() <= 0 || board.is_paused(source.queue)) return 0;
  // What came beyond the limit would wait here, where nobody may have it.
  if (owner.delivery_limit && *owner.delivery_limit <= owner.delivered) return 0;
  std::int64_t weights = 0;
  for (const auto& other : owner.sources) weights += other->weight;
  const std::int64_t share = std::max<std::int64_t>(1, std::int64_t{owner.credit_now()} * source.weight / weights);
  return static_cast<int>(std::min<std::int64_t>(share + source.extra + source.room, kMostPrefetch));
}

// A consumer gets another limit only by being replaced: so the room grows in large steps, and is given up as a whole.
void Consumer::State::make_room(Source& source) {
  if (source.stalled == 0) source.room = 0;
  if (source.stalled > source.room) source.room = std::max(kLeastRoom, 2 * source.stalled);
}

void Consumer::State::tend_sources() {
  if (!caught_up) return;  // Which queues are paused is not known yet.
  lend();
  for (std::size_t i = 0; i < subscribers.size() && connection != nullptr; ++i) {
    const std::shared_ptr<Subscriber> subscriber = subscribers[i];
    for (const auto& source : subscriber->sources) {
      if (connection == nullptr) return;
      make_room(*source);
      const int wanted_now = wanted_prefetch(*source);
      const int has = source->consumers.prefetch();
      if (wanted_now == 0) {
        stop(source);
      } else if (wanted_now > has) {
        if (steady_clock::now() >= source->next_try) start(source);
      } else if (has - wanted_now > has / 4) {  // Small changes are not worth a call.
        consume_less(source, has - wanted_now);
      }
    }
    if (connection != nullptr && subscriber->started) std::exchange(subscriber->started, nullptr)(Status());
  }
}

// A share that is not used is lent to queues that have more than theirs, until it is used.
void Consumer::State::lend() {
  const Steady moment = steady_clock::now();
  for (const auto& subscriber : subscribers) {
    if (subscriber->sources.size() < 2) continue;
    std::size_t unsettled = 0;
    for (const auto& source : subscriber->sources) unsettled += source->acks.out();
    const auto free = std::int64_t{subscriber->credit_now()} + subscriber->stalled - static_cast<std::int64_t>(unsettled);
    if (free <= 0) {
      subscriber->starved_since = Steady::max();
      // Whoever has lent his share needs it himself.
      if (free < 0) {
        for (const auto& source : subscriber->sources) source->extra = 0;
      }
      continue;
    }
    if (subscriber->starved_since == Steady::max()) subscriber->starved_since = moment;
    if (moment - subscriber->starved_since < kIdle) {
      after(kIdle, [] {});  // Look again then.
      continue;
    }
    for (const auto& source : subscriber->sources) {
      if (!source->consumers.any()) continue;
      if (source->acks.out() < static_cast<std::size_t>(source->consumers.prefetch())) continue;
      source->extra += static_cast<int>(free);
      subscriber->starved_since = Steady::max();
      break;
    }
  }
}

void Consumer::State::start(const std::shared_ptr<Source>& source) {
  const auto fail = [&](const Error& error) {
    if (!connection->alive()) return lose(error);
    source->next_try = steady_clock::now() + source->backoff.next();
    if (source->owner->started) std::exchange(source->owner->started, nullptr)(error);
  };
  const bool opened_now = !source->open;
  if (opened_now) {
    ChannelNumber channel = kFirstSource;
    while (sources.contains(channel)) ++channel;
    if (Status opened = connection->open_channel(channel); !opened) return fail(opened.error());
    source->channel = channel;
    source->open = true;
    source->serial = ++last_serial;
    source->astray = false;
    source->acks.clear();
    source->consumers.clear();
    source->buffer.clear();
    sources[channel] = source;
  }
  if (Status there = declared.ready(*connection, source->queue); !there) return fail(there.error());
  // A few more than asked for, so that there are few consumers when the credit grows little by little.
  const int has = source->consumers.prefetch();
  const int prefetch = std::min(kMostPrefetch, std::max(wanted_prefetch(*source) - has, has / 4));
  ConsumeOptions options;
  options.queue = names.queue(source->queue);
  options.tag = "bide-" + std::to_string(++last_serial);
  options.prefetch = static_cast<std::uint16_t>(prefetch);
  if (Status consuming = connection->consume(source->channel, options); !consuming) {
    declared.forget();
    lose_channel(source);
    return fail(consuming.error());
  }
  source->consumers.add(options.tag, prefetch);
  source->backoff.reset();
  if (opened_now) look_for_lost(source->queue);
  if (settings.notices && !board.knows_queue(source->queue)) {
    write({Notice{.kind = Notice::Kind::kQueue, .id = {}, .name = source->queue, .stamp = stamps.next()}});
  }
}

// While the queue was not there, what became due for it went to the lost ones. Twice: some may be on their way.
void Consumer::State::look_for_lost(const std::string& queue) {
  if (!find_lost) return;
  for (const Milliseconds wait : {kLostSoon, kLostLater}) {
    after(wait, [this, queue] { find_lost(queue); });
  }
}

// False when the channel was lost over it.
bool Consumer::State::cancel(const std::shared_ptr<Source>& source, const std::string& tag) {
  source->consumers.cancelled(tag);
  const Status cancelled = connection->cancel(source->channel, tag);
  if (cancelled) return true;
  if (!connection->alive()) {
    lose(cancelled.error());
  } else {
    lose_channel(source);
  }
  return false;
}

// When one of its consumers is full: it is not urgent.
void Consumer::State::consume_less(const std::shared_ptr<Source>& source, int by) {
  const std::optional<std::string> full = source->consumers.full();
  if (!full) return;
  const int before = source->consumers.prefetch();
  if (!cancel(source, *full)) return;
  if (before - source->consumers.prefetch() > by) start(source);
}

// No more deliveries; those that are in the buffer go back.
void Consumer::State::stop(const std::shared_ptr<Source>& source) {
  if (connection == nullptr || !source->open) return;
  while (const std::optional<std::string> full = source->consumers.full()) {
    if (!cancel(source, *full)) return;
  }
  while (const std::optional<std::string> tag = source->consumers.first()) {
    source->astray = true;
    if (!cancel(source, *tag)) return;
    if (!source->consumers.any()) close_when_empty(source);
  }
  for (Parcel& parcel : std::exchange(source->buffer, {})) put_back(std::move(parcel), Milliseconds(0), std::nullopt);
}

void Consumer::State::close_when_empty(const std::shared_ptr<Source>& source) {
  if (!source->open || !source->acks.empty() || connection == nullptr) return;
  if (!source->owner->ended && (!source->astray || source->consumers.any())) return;
  // A channel that is closed too soon takes acknowledgements with it that the server has read but not yet passed on.
  if (const auto ago = steady_clock::now() - source->last_ack; ago < kAcksArrive) {
    after(kAcksArrive, [this, source] { close_when_empty(source); });
    return;
  }
  source->open = false;
  sources.erase(source->channel);
  if (Status closed = connection->close_channel(source->channel); !closed && !connection->alive()) lose(closed.error());
}

// The server has taken back what was out on this channel, and only that.
void Consumer::State::lose_channel(std::shared_ptr<Source> source) {
  spare_what_was_out(source.get());
  std::erase_if(doubtful, [&](const auto& entry) { return entry.second.source == source; });
  source->open = false;
  source->consumers.clear();
  source->buffer.clear();
  source->acks.clear();
  source->next_try = steady_clock::now() + source->backoff.next();
  sources.erase(source->channel);
  for (auto entry = held.begin(); entry != held.end();) {
    const auto one = entry++;
    if (one->second.parcel.source == source && one->second.state == Held::State::kOut) release(one);
  }
  for (std::vector<Parcel>* parcels : {&to_check, &checking}) {
    std::erase_if(*parcels, [&](const Parcel& parcel) {
      if (parcel.source != source) return false;
      source->owner->out -= 1;
      return true;
    });
  }
}

void Consumer::State::take_delivery(Delivery delivery) {
  const auto found = sources.find(delivery.channel);
  if (found == sources.end()) return;
  const std::shared_ptr<Source> source = found->second;
  const std::optional<std::size_t> consumer = source->consumers.delivered(delivery.consumer);
  if (!consumer) return;  // Of an earlier life of the channel's number.
  source->acks.delivered(delivery.tag);
  count<&Stats::delivered>();

  Parcel parcel;
  parcel.consumer = *consumer;
  parcel.source = source;
  parcel.serial = source->serial;
  parcel.tag = delivery.tag;
  parcel.deliveries = delivery_count(delivery.message);
  // Classic queues do not count; that it was out before is all they know.
  if (settings.queue_type == QueueType::kClassic && delivery.redelivered) parcel.deliveries = 1;
  if (parcel.deliveries > 0) count<&Stats::redelivered>();

  const std::string why = [&]() -> std::string {
    Result<JobMessage> decoded = decode(delivery.message, source->queue);
    if (!decoded) return decoded.error().message;
    parcel.message = std::move(*decoded);
    return "";
  }();
  if (!why.empty()) {
    AmqpMessage buried = bury_unreadable(std::move(delivery.message), source->queue, why, stamps.next());
    Publication publication;
    publication.to.kind = Destination::Kind::kDead;
    publication.to.name = source->queue;
    publication.message = std::move(buried);
    return replace(std::move(parcel), std::move(publication));
  }
  if (parcel.message.job.id.is_nil()) {
    parcel.message.job.id = ids.next(now().time_since_epoch().count(), random.next());
  }
  stamps.saw(parcel.message.published);
  if (source->owner->ended || wanted_prefetch(*source) == 0) {
    return put_back(std::move(parcel), Milliseconds(0), std::nullopt);
  }
  if (source->buffer.empty()) {
    // After a pause it has no claim to what it did not ask for.
    double least = source->served;
    for (const auto& other : source->owner->sources) {
      if (!other->buffer.empty()) least = std::max(least, other->served);
    }
    source->served = least;
  }
  source->buffer.push_back(std::move(parcel));
}

void Consumer::State::choose() {
  if (!caught_up) return;
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

// In their turn before others; they have been chosen once.
void Consumer::State::look_at_doubtful() {
  for (; !doubtful.empty() && doubtful.front().first <= steady_clock::now(); doubtful.pop_front()) {
    Parcel parcel = std::move(doubtful.front().second);
    if (!valid(parcel)) continue;
    const std::shared_ptr<Source> source = parcel.source;
    if (source->owner->ended || wanted_prefetch(*source) == 0) {
      put_back(std::move(parcel), Milliseconds(0), std::nullopt);
    } else {
      source->buffer.push_front(std::move(parcel));
    }
  }
}

Consumer::State::Ends Consumer::State::ends_of(const Parcel& parcel) const {
  const JobId id = parcel.message.job.id;
  const std::int64_t published = parcel.message.published;
  const std::uint32_t ends = parcel.deliveries - std::min(parcel.deliveries, board.spared(id, published));
  const std::uint32_t lost = std::min(ends, board.lost(id, published));
  return {ends - lost, lost};
}

// Everything that was confirmed before this job could start is known now.
void Consumer::State::judge(Parcel parcel) {
  Subscriber& owner = *parcel.source->owner;
  if (!valid(parcel)) {
    owner.out -= 1;
    return;
  }
  JobMessage& message = parcel.message;
  const JobId id = message.job.id;

  if (board.is_cancelled(id, message.generation) || board.is_purged(message.job.queue, message.published)) {
    owner.out -= 1;
    count<&Stats::dropped>();
    return acknowledge(parcel);
  }
  // Each copy of a job is stamped later than the one it replaces: this one was settled, or is older than one that was.
  if (is_over(id, message.published)) {
    owner.out -= 1;
    count<&Stats::repeated_acks>();
    return acknowledge(parcel);
  }
  // The connection was lost while its replacement was on its way. Another replacement would be a second job: first it
  // must be known what became of that one.
  if (const auto going = replaced.find(id); going != replaced.end() && message.published <= going->second) {
    auto waits = std::make_shared<Parcel>(std::move(parcel));
    return after(kLookAgain, [this, waits] { to_check.push_back(std::move(*waits)); });
  }
  if (const auto twin = held.find(id); twin != held.end()) {
    owner.out -= 1;
    twin->second.twins.push_back(std::move(parcel));
    return;
  }
  if (owner.ended || board.is_paused(message.job.queue)) {
    owner.out -= 1;
    return put_back(std::move(parcel), Milliseconds(0), std::nullopt);
  }

  const Time moment = now();
  // Delivered before without an acknowledgement: each time somebody's process or connection ended.
  const Ends ends = ends_of(parcel);
  if (ends.crashed > 0 && settings.notices && !parcel.waited) {
    // Perhaps only its connection, and whoever had it is about to say so: the server delivers again at once.
    owner.out -= 1;
    parcel.waited = true;
    doubtful.emplace_back(steady_clock::now() + kWordTakes, std::move(parcel));
    return;
  }
  parcel.deliveries = 0;
  if (ends.crashed + ends.lost > 0) {
    Outcome outcome = Returned{};
    for (std::uint32_t i = 0; i < ends.crashed + ends.lost && !std::holds_alternative<Dead>(outcome); ++i) {
      const Fault fault = i < ends.lost ? Fault::kLost : Fault::kCrashed;
      const char* const text = fault == Fault::kLost ? "the connection to the server was lost during the attempt"
                                                     : "its worker vanished during the attempt";
      outcome = core::decide_after_fault(message.job.retry, message.counts, fault, text, random.next());
      const Dead* dead = std::get_if<Dead>(&outcome);
      record_fault(message, fault, dead != nullptr ? dead->error : text, moment);
    }
    owner.out -= 1;
    if (const Dead* dead = std::get_if<Dead>(&outcome)) return bury(std::move(parcel), dead->reason);
    const Milliseconds wait = std::get<RetryAt>(outcome).after;
    return put_back(std::move(parcel), wait, moment + wait);
  }

  if (message.job.expires && *message.job.expires <= moment) {
    owner.out -= 1;
    message.note = "not started before it expired";
    return bury(std::move(parcel), DeadReason::kExpired);
  }
  Time due = message.due.value_or(moment);
  bool binding = message.due_by_wall_clock;
  if (const std::optional<Time> later = board.put_off_until(id, message.generation); later && *later > due) {
    due = *later;
    binding = true;
  }
  const Milliseconds early = due - moment;
  if (early > Milliseconds(0) && early <= kShortWait) {
    // Clocks of milliseconds round on the way; a job must not be early for that.
    auto waits = std::make_shared<Parcel>(std::move(parcel));
    return after(early, [this, waits] { to_check.push_back(std::move(*waits)); });
  }
  if (early > kShortWait && binding) {
    owner.out -= 1;
    return put_back(std::move(parcel), early, due);
  }
  if (core::is_last_chance(message.counts) && last_chances > 0) {
    owner.out -= 1;
    message.note = "its worker died with it before, and another such job is running: one at a time";
    const Milliseconds wait = kTurn + Milliseconds(static_cast<std::int64_t>(random.next() % 1000));
    return put_back(std::move(parcel), wait, moment + wait);
  }
  grant(std::move(parcel));
}

void Consumer::State::grant(Parcel parcel) {
  const std::shared_ptr<Subscriber> owner = parcel.source->owner;
  JobMessage& message = parcel.message;
  const auto least = static_cast<std::int64_t>(message.token);
  stamps.saw(least);
  const std::uint64_t token = std::max(static_cast<std::uint64_t>(stamps.next()), message.token + 1);
  message.token = token;

  Lease lease;
  lease.job = message.job;
  lease.token = token;
  lease.attempt = message.counts.total() + 1;
  lease.due = message.due_time();
  lease.counts = message.counts;
  lease.history = message.history;

  Held entry;
  entry.owner = owner;
  entry.token = token;
  entry.lease_until = steady_clock::now() + owner->options.lease;
  entry.limit_until = steady_clock::now() + message.job.time_limit;
  entry.last_chance = core::is_last_chance(message.counts);
  last_chances += entry.last_chance ? 1 : 0;
  const JobId id = message.job.id;
  if (const auto known = settled.find(id); known != settled.end()) known->second.token = 0;
  watch_lease(id, token, std::min(entry.lease_until, entry.limit_until));
  entry.parcel = std::move(parcel);
  held.emplace(id, std::move(entry));
  owner->leased += 1;
  owner->delivered += 1;
  owner->granted.push_back(std::move(lease));
  count<&Stats::leased>();
}

}  // namespace bide::brokers::rabbitmq
