// Subscriptions, their channels, and how much the server may deliver on them.

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/consumer_state.h"
#include "platform/local_socket.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

constexpr int kMostPrefetch = 65535;
constexpr int kLeastRoom = 16;
// The server passes acknowledgements on to a quorum queue in its own time; those that it still holds when the channel is
// closed are lost, and their jobs would run again. Nothing tells when it is done, but it takes milliseconds.
constexpr Milliseconds kAcksArrive{100};
constexpr Milliseconds kLostSoon{500};
constexpr Milliseconds kLostLater{5000};
// A queue that has used up its share takes over what others have left idle for so long.
constexpr Milliseconds kIdle{20};

}  // namespace

void Consumer::State::add(std::shared_ptr<Subscriber> subscriber) {
  if (stopping) {
    subscriber->ended = true;
    if (subscriber->started) std::exchange(subscriber->started, nullptr)(closed());
    return;
  }
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
    HeldLease* const held = leases.find(LeaseRef{lease.job.id, lease.token});
    if (held == nullptr) continue;
    JobDelivery delivery = std::move(held->delivery);
    release(lease.job.id);
    put_back(std::move(delivery));
  }
  for (const auto& source : subscriber->sources) stop(source);
}

void Consumer::State::set_limits(Subscriber& subscriber, std::optional<int> credit,
                                 std::optional<std::uint64_t> deliveries) {
  if (subscriber.ended) return;
  if (credit) subscriber.credit = std::clamp(*credit, 0, 1'000'000);
  if (deliveries) subscriber.delivery_limit = deliveries;
  for (const auto& source : subscriber.sources) source->extra = 0;
  if (connection != nullptr) tend_sources();
}

// The server needs a limit for each consumer: every queue has its share of the credit, but never nothing.
int Consumer::State::wanted_prefetch(const Source& source) const {
  const Subscriber& owner = *source.owner;
  const std::int64_t credit = owner.credit_now() - owner.detached;
  if (owner.ended || source.retired || credit <= 0 || log.board().is_paused(source.queue)) return 0;
  // What came beyond the limit would wait here, where nobody may have it.
  if (owner.delivery_limit && *owner.delivery_limit <= owner.delivered) return 0;
  std::int64_t weights = 0;
  for (const auto& other : owner.sources) weights += other->weight;
  const std::int64_t share = std::max<std::int64_t>(1, credit * source.weight / weights);
  return static_cast<int>(std::min<std::int64_t>(share + source.extra + source.room, kMostPrefetch));
}

void Consumer::State::tend_sources() {
  if (!log.is_read()) return;  // Which queues are paused is not known yet.
  lend();
  for (std::size_t i = 0; i < subscribers.size() && connection != nullptr; ++i) {
    const std::shared_ptr<Subscriber> subscriber = subscribers[i];
    for (const auto& source : subscriber->sources) {
      if (connection == nullptr) return;
      // A consumer gets another limit only by being replaced: so the room grows in large steps, and is given up as a
      // whole.
      if (source->stalled == 0) source->room = 0;
      if (source->stalled > source->room) source->room = std::max(kLeastRoom, 2 * source->stalled);
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
    const bool all_started = std::all_of(subscriber->sources.begin(), subscriber->sources.end(),
                                         [](const auto& source) { return source->starting == 0; });
    if (connection != nullptr && subscriber->started && all_started) {
      std::exchange(subscriber->started, nullptr)(Status());
    }
  }
}

// A share that is not used is lent to queues that have more than theirs, until it is used.
void Consumer::State::lend() {
  const Steady moment = steady_clock::now();
  for (const auto& subscriber : subscribers) {
    if (subscriber->sources.size() < 2) continue;
    std::size_t unsettled = 0;
    for (const auto& source : subscriber->sources) unsettled += source->acks.out();
    const auto free = std::int64_t{subscriber->credit_now()} + subscriber->stalled - subscriber->detached -
                      static_cast<std::int64_t>(unsettled);
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
      timers.after(kIdle, [] {});  // Look again then.
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

void Consumer::State::fail_to_start(const std::shared_ptr<Source>& source, const Error& error) {
  if (!connection->alive()) return lose(error);
  source->next_try = steady_clock::now() + source->backoff.next();
  if (source->owner->started) std::exchange(source->owner->started, nullptr)(error);
}

// What a consumer needs is declared, and then it is asked for; the answer is an event.
void Consumer::State::start(const std::shared_ptr<Source>& source) {
  if (Status there = dialect.declare(*connection, source->queue); !there) return fail_to_start(source, there.error());
  if (!source->open) {
    if (Status opened = open_channel(source); !opened) return fail_to_start(source, opened.error());
  }
  // A few more than asked for, so that there are few consumers when the credit grows little by little.
  const int has = source->consumers.prefetch();
  const int prefetch = std::min(kMostPrefetch, std::max(wanted_prefetch(*source) - has, has / 4));
  ConsumeOptions options;
  options.queue = dialect.source(source->queue);
  options.tag = "bide-" + std::to_string(++last_serial);
  options.prefetch = static_cast<std::uint16_t>(prefetch);
  if (Status asked = connection->begin_consume(source->channel, options); !asked) return lose(asked.error());
  source->consumers.add(options.tag, prefetch);
  source->starting += 1;
}

void Consumer::State::take_started(const std::shared_ptr<Source>& source) {
  if (source->starting == 0) return;  // Of an earlier life of the channel's number.
  source->starting -= 1;
  source->backoff.reset();
  if (!std::exchange(source->looked_for_lost, true)) look_for_lost(source->queue);
  if (settings.notices && !log.board().knows_queue(source->queue)) {
    log.write({Notice{.kind = Notice::Kind::kQueue, .id = {}, .name = source->queue, .stamp = stamps.next()}});
  }
}

// The server has closed the channel of a source, and has taken back what was out on it.
void Consumer::State::take_closed(const std::shared_ptr<Source>& source, const Error& error) {
  learn_timeout(error.message);
  const bool refused = source->starting > 0;
  if (refused) dialect.forget();
  lose_channel(source);
  // Somebody has removed the queue: it is made again by the next try.
  if (!refused || (settings.declare && error.code == ErrorCode::kNotFound)) return;
  fail_to_start(source, error);
}

// Numbers are used again as late as possible: events of a channel that was closed may still arrive.
Status Consumer::State::open_channel(const std::shared_ptr<Source>& source) {
  if (sources.size() > kLastSource - kFirstSource) {
    return Error{ErrorCode::kOverloaded, "there are too many subscriptions: each queue of each has a channel of its own"};
  }
  do {
    last_channel = last_channel >= kLastSource ? kFirstSource : static_cast<ChannelNumber>(last_channel + 1);
  } while (sources.contains(last_channel));
  if (Status opened = connection->open_channel(last_channel); !opened) return opened;
  source->clear();
  source->looked_for_lost = false;
  source->channel = last_channel;
  source->open = true;
  source->serial = ++last_serial;
  sources[last_channel] = source;
  return {};
}

// While the queue was not there, what became due for it went to the lost ones. Twice: some may be on their way. With
// declare=no again and again: a delay whose queues nobody has declared leads there, too.
void Consumer::State::look_for_lost(const std::string& queue) {
  if (!find_lost) return;
  if (!settings.declare) {
    if (!looks_for_lost.insert(queue).second) return;
    return look_for_lost_again(queue);
  }
  for (const Milliseconds wait : {kLostSoon, kLostLater}) {
    timers.after(wait, [this, queue] { find_lost(queue); });
  }
}

void Consumer::State::look_for_lost_again(const std::string& queue) {
  timers.after(kLostSoon * 2, [this, queue] {
    if (connection != nullptr) find_lost(queue);
    look_for_lost_again(queue);
  });
}

// False when the connection was lost over it.
bool Consumer::State::cancel(const std::shared_ptr<Source>& source, const std::string& tag) {
  source->consumers.cancelled(tag);
  source->cancelling += 1;
  const Status asked = connection->begin_cancel(source->channel, tag);
  if (!asked) lose(asked.error());
  return asked.has_value();
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
    if (!std::exchange(source->astray, true)) source->astray_since = steady_clock::now();
    if (!cancel(source, *tag)) return;
  }
  for (JobDelivery& delivery : std::exchange(source->buffer, {})) put_back(std::move(delivery));
}

// RabbitMQ 3.10 can lose sight of a consumer on a channel whose consumer it has cancelled: when the queue is made again at
// once, what it learns late of the old one ends the new one, whose deliveries never arrive. So the next consumer is on
// a channel of its own; what is out on this one can be settled.
void Consumer::State::retire(const std::shared_ptr<Source>& source) {
  auto next = std::make_shared<Source>();
  next->owner = source->owner;
  next->queue = source->queue;
  next->weight = source->weight;
  next->served = source->served;
  next->backoff = source->backoff;
  next->next_try = source->next_try;
  std::replace(source->owner->sources.begin(), source->owner->sources.end(), source, next);
  source->retired = true;
  if (!std::exchange(source->astray, true)) source->astray_since = steady_clock::now();
  for (JobDelivery& delivery : std::exchange(source->buffer, {})) put_back(std::move(delivery));
}

// The server has taken back what was out on this channel, and only that.
void Consumer::State::lose_channel(std::shared_ptr<Source> source) {
  write_interrupted(source.get());
  source->clear();
  source->next_try = steady_clock::now() + source->backoff.next();
  sources.erase(source->channel);
  forget_deliveries(source.get());
}

void Consumer::State::flush_acks() {
  for (const auto& [channel, source] : sources) {
    if (!source->acks.has_settled()) continue;
    for (const UnackedTags::Ack& ack : source->acks.flush()) {
      if (Status sent = connection->ack(channel, ack.tag, ack.multiple); !sent) return lose(sent.error());
    }
    source->last_ack = steady_clock::now();
  }
}

// Those on which nothing is out and nothing will come. Returns when to look again.
Steady Consumer::State::close_channels() {
  Steady next = Steady::max();
  for (auto entry = sources.begin(); entry != sources.end();) {
    const auto [channel, source] = *entry++;
    // A delivery may be on its way until the server has said that the last consumer is cancelled.
    if (source->cancelling > 0 || !source->acks.empty() || (!source->owner->ended && (!source->astray || source->consumers.any()))) continue;
    if (const Steady then = source->last_ack + kAcksArrive; then > steady_clock::now()) {
      next = std::min(next, then);
      continue;
    }
    source->clear();
    sources.erase(channel);
    if (Status asked = connection->begin_close(channel); !asked) {
      lose(asked.error());
      break;
    }
  }
  return next;
}

bool Consumer::State::is_cancelling() const {
  return std::any_of(sources.begin(), sources.end(), [](const auto& entry) { return entry.second->cancelling > 0; });
}

void Consumer::State::await_acks() {
  Steady last = {};
  for (const auto& [channel, source] : sources) last = std::max(last, source->last_ack);
  while (connection != nullptr && steady_clock::now() - last < kAcksArrive) {
    take_events();
    platform::wait_ready({}, Milliseconds(10));
  }
}

}  // namespace bide::brokers::rabbitmq
