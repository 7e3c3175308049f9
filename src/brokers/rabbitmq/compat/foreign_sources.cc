// Subscriptions, their queues on the server, and the way from a delivery to a lease.

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/compat/foreign_state.h"
#include "brokers/rabbitmq/job_message.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

using std::chrono::steady_clock;

constexpr int kMostPrefetch = 65535;
// What RabbitMQ 4 allows unless told otherwise. Only quorum queues count, and they count what was given back, too.
constexpr std::uint32_t kMostDeliveries = 20;
constexpr Milliseconds kTryAgain{1000};

}  // namespace

void ForeignConsumer::State::add(std::shared_ptr<Subscriber> subscriber) {
  wanted = true;
  for (const QueueShare& share : subscriber->options.queues) {
    auto source = std::make_shared<Source>();
    source->owner = subscriber;
    source->queue = share.name;
    source->weight = share.weight;
    subscriber->sources.push_back(std::move(source));
  }
  subscribers.push_back(std::move(subscriber));
}

void ForeignConsumer::State::end(const std::shared_ptr<Subscriber>& subscriber) {
  if (std::exchange(subscriber->ended, true)) return;
  if (subscriber->started) std::exchange(subscriber->started, nullptr)(Status());
  std::erase(subscribers, subscriber);
  // Not handed out yet, so nobody will settle them.
  for (const Lease& lease : std::exchange(subscriber->granted, {})) {
    const auto found = held.find(lease.job.id);
    if (found == held.end() || found->second.token != lease.token) continue;
    const Parcel parcel = std::move(found->second.parcel);
    release(found);
    leave(parcel, Ending::kGiveBack);
  }
  for (const auto& source : subscriber->sources) {
    stop(source);
    close_when_empty(source);
  }
}

void ForeignConsumer::State::set_credit(const std::shared_ptr<Subscriber>& subscriber, int credit) {
  if (!subscriber->ended) subscriber->credit = std::clamp(credit, 0, 1'000'000);
}

void ForeignConsumer::State::set_delivery_limit(const std::shared_ptr<Subscriber>& subscriber,
                                                std::uint64_t deliveries) {
  if (!subscriber->ended) subscriber->delivery_limit = deliveries;
}

// The server needs a limit for each consumer: every queue has its share of the credit, but never nothing.
int ForeignConsumer::State::wanted_prefetch(const Source& source) const {
  const Subscriber& owner = *source.owner;
  if (owner.ended || owner.credit_now() <= 0) return 0;
  // What came beyond the limit would wait here, where nobody may have it.
  if (owner.delivery_limit && *owner.delivery_limit <= owner.delivered) return 0;
  std::int64_t weights = 0;
  for (const auto& other : owner.sources) weights += other->weight;
  const std::int64_t share = std::max<std::int64_t>(1, std::int64_t{owner.credit_now()} * source.weight / weights);
  return static_cast<int>(std::min<std::int64_t>(share, kMostPrefetch));
}

void ForeignConsumer::State::tend_sources() {
  const std::vector<std::shared_ptr<Subscriber>> all = subscribers;
  for (const auto& subscriber : all) {
    for (const auto& source : subscriber->sources) {
      if (connection == nullptr) return;
      const int prefetch = wanted_prefetch(*source);
      if (prefetch == 0) {
        if (!source->tag.empty()) stop(source);
        continue;
      }
      const bool consuming = source->open && !source->tag.empty();
      if (consuming && source->prefetch == prefetch) continue;
      if (steady_clock::now() >= source->next_try) start(source);
    }
    if (connection == nullptr || !subscriber->started) continue;
    const bool all_started =
        std::all_of(subscriber->sources.begin(), subscriber->sources.end(),
                    [&](const auto& source) { return !source->tag.empty() || wanted_prefetch(*source) == 0; });
    if (all_started) std::exchange(subscriber->started, nullptr)(Status());
  }
}

void ForeignConsumer::State::start(const std::shared_ptr<Source>& source) {
  const auto fail = [&](const Error& error) {
    if (!connection->alive()) return lose(error);
    source->next_try = steady_clock::now() + source->backoff.next();
    if (source->owner->started) std::exchange(source->owner->started, nullptr)(error);
  };
  if (Status there = topology.ensure(*connection, dialect.topology(source->queue)); !there) return fail(there.error());
  if (!source->open) {
    ChannelNumber channel = kFirstSource;
    while (sources.contains(channel)) ++channel;
    if (Status opened = connection->open_channel(channel); !opened) return fail(opened.error());
    source->channel = channel;
    source->open = true;
    source->serial = ++last_serial;
    source->unsettled = 0;
    source->buffer.clear();
    sources[channel] = source;
  }
  // A consumer cannot be given another limit: it is replaced. What it has delivered stays valid.
  if (!source->tag.empty()) stop(source);
  if (connection == nullptr || !source->open) return;
  const int prefetch = wanted_prefetch(*source);
  ConsumeOptions options;
  options.queue = dialect.source(source->queue);
  options.tag = "bide-" + std::to_string(++last_serial);
  options.prefetch = static_cast<std::uint16_t>(prefetch);
  if (Status consuming = connection->consume(source->channel, options); !consuming) {
    lose_channel(source);
    return fail(consuming.error());
  }
  source->tag = options.tag;
  source->prefetch = prefetch;
  source->backoff.reset();
}

// No more deliveries; those that are in the buffer go back when nobody wants them any more.
void ForeignConsumer::State::stop(const std::shared_ptr<Source>& source) {
  if (connection == nullptr || !source->open) return;
  if (!source->tag.empty()) {
    Status cancelled = connection->cancel(source->channel, std::exchange(source->tag, ""));
    if (!cancelled) {
      if (!connection->alive()) return lose(cancelled.error());
      return lose_channel(source);
    }
  }
  if (wanted_prefetch(*source) > 0) return;
  for (const Parcel& parcel : std::exchange(source->buffer, {})) {
    if (!leave(parcel, Ending::kGiveBack)) return;
  }
}

void ForeignConsumer::State::close_when_empty(const std::shared_ptr<Source>& source) {
  if (!source->owner->ended || !source->open || source->unsettled > 0 || connection == nullptr) return;
  source->open = false;
  sources.erase(source->channel);
  if (Status closed = connection->close_channel(source->channel); !closed && !connection->alive()) lose(closed.error());
}

// The server has taken back what was out on this channel, and only that.
void ForeignConsumer::State::lose_channel(std::shared_ptr<Source> source) {
  source->open = false;
  source->tag.clear();
  source->buffer.clear();
  source->unsettled = 0;
  source->next_try = steady_clock::now() + source->backoff.next();
  sources.erase(source->channel);
  for (auto entry = held.begin(); entry != held.end();) {
    const auto one = entry++;
    // One that is being settled waits for its confirms, to say how it ended.
    if (one->second.parcel.source == source && one->second.state == Held::State::kOut) release(one);
  }
}

void ForeignConsumer::State::take_delivery(Delivery delivery) {
  const auto found = sources.find(delivery.channel);
  if (found == sources.end()) return;
  const std::shared_ptr<Source> source = found->second;
  source->unsettled += 1;
  Parcel parcel{.source = source, .serial = source->serial, .tag = delivery.tag, .job = {}};
  // Cancelled in the meantime, but on its way already.
  if (source->owner->ended || wanted_prefetch(*source) == 0) {
    leave(parcel, Ending::kGiveBack);
    return;
  }
  const std::uint32_t deliveries = delivery_count(delivery.message);
  Result<ForeignJob> job = dialect.receive(delivery.message, delivery.key, source->queue);
  if (!job) {
    return put_aside(std::move(parcel), dialect.send_unreadable(std::move(delivery.message), delivery.key,
                                                                source->queue, job.error().message));
  }
  if (deliveries >= kMostDeliveries) {
    const Dead poison{DeadReason::kPoison, Fault::kCrashed,
                      "delivered " + std::to_string(deliveries) + " times without an outcome"};
    return put_aside(std::move(parcel), dialect.bury(*job, poison, now()));
  }
  parcel.job = std::move(*job);
  if (source->buffer.empty()) {
    // After a pause it has no claim to what it did not ask for.
    for (const auto& other : source->owner->sources) {
      if (!other->buffer.empty()) source->served = std::max(source->served, other->served);
    }
  }
  source->buffer.push_back(std::move(parcel));
}

// Nobody can run it: to the dead, confirmed, then acknowledged. Tried until it works or the server takes it back.
void ForeignConsumer::State::put_aside(Parcel parcel, Send send) {
  if (!valid(parcel) || connection == nullptr) return;
  if (send.message.message_id.empty()) send.message.message_id = new_id().to_string();
  const auto again = [this, parcel, send] { after(kTryAgain, [this, parcel, send] { put_aside(parcel, send); }); };
  Result<Publication> publication = topology.prepare(*connection, send);
  if (!publication) return again();
  ++replacing;
  std::vector<Publication> one;
  one.push_back(std::move(*publication));
  publish_all(std::move(one), [this, parcel, again](const Status& status) {
    --replacing;
    if (!status) return again();
    leave(parcel, Ending::kAcknowledge);
  });
}

void ForeignConsumer::State::choose() {
  for (const auto& subscriber : subscribers) {
    while (subscriber->out < subscriber->credit_now()) {
      Source* next = nullptr;
      for (const auto& source : subscriber->sources) {
        if (source->buffer.empty()) continue;
        if (next == nullptr || source->served < next->served) next = source.get();
      }
      if (next == nullptr) break;
      next->served += 1.0 / next->weight;
      Parcel parcel = std::move(next->buffer.front());
      next->buffer.pop_front();
      grant(std::move(parcel));
    }
  }
}

void ForeignConsumer::State::grant(Parcel parcel) {
  const std::shared_ptr<Subscriber> owner = parcel.source->owner;
  Job& job = parcel.job.job;
  // Messages of others may share an id; leases may not.
  if (job.id.is_nil() || held.contains(job.id)) job.id = new_id();

  Lease lease;
  lease.job = job;
  lease.token = static_cast<std::uint64_t>(stamps.next());
  lease.attempt = parcel.job.counts.total() + 1;
  lease.due = now();
  lease.counts = parcel.job.counts;
  lease.history = parcel.job.history;

  Held entry;
  entry.owner = owner;
  entry.token = lease.token;
  entry.lease_until = steady_clock::now() + owner->options.lease;
  entry.limit_until = steady_clock::now() + job.time_limit;
  entry.parcel = std::move(parcel);
  owner->out += 1;
  owner->delivered += 1;
  const JobId id = lease.job.id;
  watch(id, entry);
  held.emplace(id, std::move(entry));
  owner->granted.push_back(std::move(lease));
}

}  // namespace bide::brokers::rabbitmq::compat
