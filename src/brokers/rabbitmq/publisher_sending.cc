// From what waits to be published to what is confirmed.

#include <algorithm>
#include <utility>

#include "brokers/rabbitmq/notices.h"
#include "brokers/rabbitmq/publisher_state.h"
#include "platform/clock.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

// Confirms are looked at after so many publishes, so that neither side waits for the other.
constexpr int kBurst = 64;
constexpr Milliseconds kNotNow{100};

// A delay of which a little went by while its job waited here is kept as it was given: another delay would need queues of
// its own. So much lateness is borne for that.
Milliseconds bearable(Milliseconds delay) { return std::clamp(delay / 100, Milliseconds(20), Milliseconds(1000)); }

bool is_final(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kPermissionDenied || code == ErrorCode::kUnsupported;
}

}  // namespace

bool Publisher::State::may_send() const {
  if (waiting.empty() || in_flight.size() >= settings.window) return false;
  if (waiting.front().tries > 0 && !in_flight.empty()) return false;  // A suspect goes alone.
  if (!in_flight.empty() && in_flight.back().tries > 0) return false;
  if (steady_clock::now() < next_send) return false;
  std::lock_guard lock(mutex);
  return !blocked;
}

// Not more than a burst: then the confirms are looked at.
void Publisher::State::send_what_can_be_sent() {
  for (int burst = 0; burst < kBurst && may_send(); ++burst) {
    Letter entry = std::move(waiting.front());
    waiting.pop_front();
    if (!send(std::move(entry))) return;
  }
}

Status Publisher::State::prepare(Letter& entry, Route& route) {
  const Destination& to = entry.publication.to;
  switch (to.kind) {
    case Destination::Kind::kReady: {
      if (Status status = declared.ready(*connection, to.name); !status) return status;
      const Milliseconds passed = std::chrono::floor<Milliseconds>(steady_clock::now() - entry.submitted);
      const DelayPath path = delay_path(settings.delay, passed < bearable(to.delay) ? to.delay : to.delay - passed);
      if (Status status = declared.path(*connection, path); !status) return status;
      route = route_of(names, path, names.queue(to.name));
      return {};
    }
    case Destination::Kind::kDead:
      if (Status status = declared.dead(*connection, to.name); !status) return status;
      route = {"", names.dead(to.name), {}};
      return {};
    case Destination::Kind::kNotices: route = {names.notices(), "", {}}; return {};
    case Destination::Kind::kQueue: route = {"", to.name, {}}; return {};
    case Destination::Kind::kExchange: route = {to.name, to.key, {}}; return {};
  }
  return {};
}

// False when the connection was lost over it.
bool Publisher::State::send(Letter entry) {
  Route route;
  if (Status status = prepare(entry, route); !status) {
    const bool alive = connection->alive();
    // Refused for good, or only now: a queue whose node is just starting has no home yet.
    if (alive && is_final(status.error().code)) {
      complete(entry, status);
      return true;
    }
    waiting.push_front(std::move(entry));
    if (!alive) {
      lose(status.error());
    } else {
      next_send = steady_clock::now() + kNotNow;
      set_trouble(status.error().message, false);
    }
    return false;
  }
  if (next_send != steady_clock::time_point()) {
    next_send = {};
    set_trouble("", false);
  }
  FieldTable& headers = entry.publication.message.headers;
  const bool with_path = !route.cc.empty();
  if (with_path) headers.emplace_back("CC", std::move(route.cc));
  const Status status = connection->publish(kPublishing, route.exchange, route.key, entry.publication.message, true);
  if (with_path) headers.pop_back();
  entry.sent = true;
  entry.returned = false;
  in_flight.push_back(std::move(entry));
  if (!status) lose(status.error());
  return status.has_value();
}

void Publisher::State::take_events() {
  while (connection != nullptr) {
    Result<std::optional<Event>> event = connection->next_event();
    if (!event) return lose(event.error());
    if (!event->has_value()) return;
    if (const Confirm* confirm = std::get_if<Confirm>(&**event)) {
      take_confirm(*confirm);
    } else if (ReturnedMessage* returned = std::get_if<ReturnedMessage>(&**event)) {
      take_return(std::move(*returned));
    } else if (const Blocked* block = std::get_if<Blocked>(&**event)) {
      set_trouble("the server takes no messages: " + block->reason, true);
    } else if (std::holds_alternative<Unblocked>(**event)) {
      set_trouble("", false);
    } else if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&**event)) {
      if (closed->channel == kPublishing) {
        reopen_channel(closed->error);
      } else {
        declared.forget();
      }
    }
  }
}

void Publisher::State::take_confirm(const Confirm& confirm) {
  if (confirm.tag < first_tag) return;
  const std::size_t index = static_cast<std::size_t>(confirm.tag - first_tag);
  if (index >= in_flight.size()) return;
  for (std::size_t i = confirm.multiple ? 0 : index; i <= index; ++i) {
    if (in_flight[i].over) continue;
    in_flight[i].over = true;
    if (!in_flight[i].completed) settle(in_flight[i], confirm.accepted);
  }
  while (!in_flight.empty() && in_flight.front().over) {
    in_flight.pop_front();
    ++first_tag;
  }
}

void Publisher::State::settle(Letter& entry, bool accepted) {
  if (entry.returned) {
    if (entry.tries == 0) {
      // Somebody has removed the queue. It is made again, once.
      declared.forget();
      Letter again = std::move(entry);
      again.tries = 1;
      again.over = false;
      entry.completed = entry.over = true;
      waiting.push_front(std::move(again));
      return;
    }
    return complete(entry, Error{ErrorCode::kUnavailable,
                                 "no queue took the message, the server said: " + entry.return_text});
  }
  if (accepted) return complete(entry, Status());
  complete(entry, Error{ErrorCode::kOverloaded, "the server refused the message: the queue is full or not available"});
}

void Publisher::State::take_return(ReturnedMessage returned) {
  for (Letter& entry : in_flight) {
    if (entry.completed || entry.returned) continue;
    if (entry.publication.message.message_id != returned.message.message_id) continue;
    entry.returned = true;
    entry.return_text = std::to_string(returned.code) + " " + returned.text + " (exchange '" + returned.exchange +
                        "', key '" + returned.key + "')";
    return;
  }
}

void Publisher::State::complete(Letter& entry, Status status) {
  entry.completed = true;
  // Whatever the last try came to: an earlier one may have been written.
  if (!status && entry.uncertain && status.error().code != ErrorCode::kUnavailable) {
    status = Error{ErrorCode::kUnavailable, status.error().message};
  }
  std::function<void(Status)> done = std::exchange(entry.publication.done, nullptr);
  {
    std::lock_guard lock(mutex);
    entries -= 1;
    bytes -= entry.bytes;
    if (status) stats.confirmed += 1;
  }
  if (done) done(std::move(status));
}

void Publisher::State::give_up_late(steady_clock::time_point now) {
  bool is_blocked = false;
  bool closing = false;
  std::string reason;
  {
    std::lock_guard lock(mutex);
    is_blocked = blocked;
    reason = trouble;
    closing = stopping;
  }
  if (reason.empty()) reason = "the server does not confirm";
  // The oldest are at the front, so the late ones are as well.
  while (!waiting.empty() && (waiting.front().deadline <= now || (closing && connection == nullptr))) {
    Letter entry = std::move(waiting.front());
    waiting.pop_front();
    const bool certainly_not_written = is_blocked && !entry.sent;
    complete(entry, Error{certainly_not_written ? ErrorCode::kOverloaded : ErrorCode::kUnavailable, reason});
  }
  for (Letter& entry : in_flight) {
    if (entry.completed) continue;
    if (entry.deadline > now) break;
    // Its place is kept: the confirm may still come, and others are counted from it.
    complete(entry, Error{ErrorCode::kUnavailable, reason});
  }
}

void Publisher::State::set_trouble(std::string text, bool is_blocked) {
  std::lock_guard lock(mutex);
  trouble = std::move(text);
  blocked = is_blocked;
}

void Publisher::State::announce(const std::string& queue) {
  if (!settings.notices) return;
  const std::int64_t now = platform::real_clock().now().wall_us;
  Letter entry;
  entry.publication.to.kind = Destination::Kind::kNotices;
  entry.publication.message.body = Notice{.kind = Notice::Kind::kQueue, .name = queue, .stamp = now}.to_text();
  entry.submitted = steady_clock::now();
  entry.deadline = entry.submitted + settings.patience;
  {
    std::lock_guard lock(mutex);
    entries += 1;
  }
  waiting.push_front(std::move(entry));
}

}  // namespace bide::brokers::rabbitmq
