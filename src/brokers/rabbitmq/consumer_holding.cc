// Leases that outlast what the server allows a delivery. It closes a channel on which a message is out for longer than
// consumer_timeout, and delivers everything that was out on it again. So in time a copy is published that is due only
// when nobody renews it, and the original is acknowledged; from then on the lease does not depend on a channel:
//
//   original, acknowledged --> copy, due after T --> every T/3 the next copy, and a notice that the one before is over
//
// A copy that comes without such a notice is that of a process that has ended. One that cannot be renewed in time is
// given up before it is due.

#include <algorithm>
#include <charconv>
#include <utility>

#include "brokers/rabbitmq/consumer_state.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

// A channel that may hide a message is emptied after that, so that it can be closed.
constexpr Milliseconds kMostAstray{5000};

}  // namespace

Notice Consumer::State::notice_of(Notice::Kind kind, const JobId& id, std::int64_t published) {
  return {.kind = kind, .id = id, .name = {}, .stamp = stamps.next(), .due = {}, .published = published};
}

void Consumer::State::hold_long_leases() {
  const Steady moment = steady_clock::now();
  if (moment < next_holding) return;
  const Milliseconds third = consumer_timeout / 3;
  next_holding = moment + std::clamp(third / 10, Milliseconds(10), Milliseconds(1000));
  const auto is_due = [&](const HeldLease& held) {
    if (held.state != HeldLease::State::kOut) return false;
    const Source& source = *held.delivery.source;
    const bool hidden = !held.delivery.detached && source.astray && !source.consumers.any() &&
                        moment - source.astray_since >= kMostAstray;
    return hidden || moment - held.held_since >= third;
  };
  for (const JobId& id : leases.which(is_due)) {
    HeldLease& held = *leases.find(id);
    const JobMessage& message = held.delivery.message();
    if (held.delivery.detached && moment - held.held_since >= 2 * third) {
      // Soon somebody else has it.
      log.write({notice_of(Notice::Kind::kLost, id, message.published)});
      count<&Stats::lost_leases>();
      release(id);
    } else if (!held.holding && message.published > 0) {
      hold({id, held.token}, held);
    }
  }
  // What nobody has begun is simply put back.
  for (const auto& [channel, source] : std::map(sources)) {
    while (settings.notices && !source->buffer.empty() && moment - source->buffer.front().arrived >= third) {
      JobDelivery delivery = std::move(source->buffer.front());
      source->buffer.pop_front();
      put_back(std::move(delivery));
    }
  }
}

void Consumer::State::hold(const LeaseRef& lease, HeldLease& held) {
  const std::int64_t stamp = stamps.next();
  std::optional<Publication> copy = dialect.hold(held.delivery.job, consumer_timeout, stamp);
  if (!copy) return;
  held.holding = true;
  std::vector<Publication> one;
  one.push_back(std::move(*copy));
  publish_all(std::move(one), [this, lease, stamp, begun = steady_clock::now()](const Status& status) {
    finish_holding(lease, stamp, begun, status);
  });
}

void Consumer::State::finish_holding(const LeaseRef& lease, std::int64_t stamp, Steady begun, const Status& status) {
  HeldLease* const held = leases.find(lease);
  if (held != nullptr) held->holding = false;
  if (!status || held == nullptr || held->state != HeldLease::State::kOut || !valid(held->delivery)) {
    // It has ended in the meantime, or is about to; or nobody knows whether this copy was written.
    return log.write({notice_of(Notice::Kind::kOver, lease.id, stamp)});
  }
  JobDelivery& delivery = held->delivery;
  const std::int64_t before = delivery.message().published;
  if (!delivery.detached) {
    acknowledge(delivery);
    delivery.detached = true;
    held->owner->detached += 1;
  }
  log.write({notice_of(Notice::Kind::kOver, lease.id, before)});
  delivery.message().published = stamp;
  held->held_since = begun;
}

// "delivery acknowledgement on channel 5 timed out. Timeout value used: 1800000 ms. ..."
void Consumer::State::learn_timeout(const std::string& text) {
  constexpr std::string_view kValue = "Timeout value used: ";
  const std::size_t at = text.find(kValue);
  if (at == std::string::npos) return;
  std::int64_t value = 0;
  std::from_chars(text.data() + at + kValue.size(), text.data() + text.size(), value);
  if (value > 0) consumer_timeout = std::min(consumer_timeout, Milliseconds(value));
}

}  // namespace bide::brokers::rabbitmq
