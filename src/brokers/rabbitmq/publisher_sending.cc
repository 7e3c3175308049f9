// From what waits to be published to what is confirmed.

#include <algorithm>
#include <iterator>
#include <utility>

#include "brokers/rabbitmq/job_message.h"
#include "brokers/rabbitmq/notices.h"
#include "brokers/rabbitmq/publisher_state.h"
#include "core/quote.h"
#include "platform/clock.h"
#include "platform/fatal.h"

namespace bide::brokers::rabbitmq {

namespace {

using std::chrono::steady_clock;

// Confirms are looked at after so many publishes, so that neither side waits for the other.
constexpr int kBurst = 64;
constexpr Milliseconds kNotNow{100};
constexpr Milliseconds kConsumersAreTold{500};
constexpr Milliseconds kRenewalPause{500};
constexpr Milliseconds kFull{10'000};
constexpr Milliseconds kFullFor{10'000};
constexpr Milliseconds kLookForLate{100};

// A delay of which a little went by while its job waited here is kept as it was given: another delay would need queues
// of its own. So much lateness is borne for that.
Milliseconds bearable(Milliseconds delay) { return std::clamp(delay / 100, Milliseconds(20), Milliseconds(1000)); }

// A queue of our own that is not found has no home yet; one of others is not there.
bool is_final(ErrorCode code, Destination::Kind kind) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kPermissionDenied || code == ErrorCode::kUnsupported ||
         (code == ErrorCode::kNotFound && kind == Destination::Kind::kExchange);
}

// A message that was sent, and one that the server returned. Ids alone are not enough: the same job may be sent to
// several queues, or twice.
bool is_same(const AmqpMessage& sent, const AmqpMessage& returned) {
  if (sent.message_id != returned.message_id) return false;
  for (const char* stamp : {"bide-generation", "bide-published"}) {
    const Field* const ours = find_field(sent.headers, stamp);
    const Field* const theirs = find_field(returned.headers, stamp);
    if ((ours == nullptr) != (theirs == nullptr) || (ours != nullptr && !(*ours == *theirs))) return false;
  }
  return sent.body == returned.body;
}

}  // namespace

bool Publisher::State::may_send(const Lane& lane) const {
  const SentOn& current = lane.current;
  if (lane.renew || lane.waiting.empty() || current.open >= settings.window) return false;
  if (lane.waiting.front().closures > 0 && current.open > 0) return false;  // A suspect goes alone.
  if (current.open == 1 && current.in_flight.rbegin()->second.closures > 0) return false;
  std::lock_guard lock(mutex);
  return !blocked;
}

// Not more than a burst: then the confirms are looked at.
void Publisher::State::send_what_can_be_sent(Lane& lane) {
  for (int burst = 0; burst < kBurst && may_send(lane); ++burst) {
    PendingPublish entry = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    if (!send(lane, std::move(entry))) return;
  }
}

// By way of a delay to an AMQP queue that is bound to `due`.
Status Publisher::State::prepare_path(const PendingPublish& entry, const std::string& queue, Route& route) {
  Milliseconds delay = entry.publication.to.delay;
  const Milliseconds passed = std::chrono::floor<Milliseconds>(steady_clock::now() - entry.submitted);
  if (passed >= bearable(delay)) delay -= passed;
  // Only bide's own workers know when a job is due.
  if (entry.publication.to.kind == Destination::Kind::kReady) delay = before_worker(settings.delay, delay);
  const DelayPath path = delay_path(settings.delay, delay);
  if (Status status = declared.path(*connection, path); !status) return status;
  route = route_of(names, path, queue);
  return {};
}

// After the connection was made again: replies to what was asked on the one before still come.
void Publisher::State::open_replies() {
  if (replies == nullptr || replies->next_open() > steady_clock::now()) return;
  if (Status opened = replies->open(*connection, kReplies); !opened && !connection->alive()) lose(opened.error());
}

Status Publisher::State::prepare(PendingPublish& entry, Route& route) {
  const Destination& to = entry.publication.to;
  if (replies != nullptr && entry.publication.message.reply_to == replies->name()) {
    if (Status status = replies->open(*connection, kReplies); !status) return status;
  }
  switch (to.kind) {
    case Destination::Kind::kReady:
      if (Status status = declared.ready(*connection, to.name); !status) return status;
      return prepare_path(entry, names.queue(to.name), route);
    case Destination::Kind::kDead:
      if (Status status = declared.dead(*connection, to.name); !status) return status;
      route = {"", names.dead(to.name), {}};
      return {};
    case Destination::Kind::kNotices:
      // Not before: jobs would have to wait for the answer, too.
      if (entry.made_again) {
        if (Status status = declared.foundation(*connection); !status) return status;
      }
      route = {names.notices(), "", {}};
      return {};
    case Destination::Kind::kExchange:
      if (to.needs != nullptr) {
        if (Status status = declared.others(*connection, *to.needs); !status) return status;
      }
      route = {to.name, to.key, {}};
      if (to.delay <= Milliseconds(0)) return {};
      if (Status status = declared.foundation(*connection); !status) return status;
      if (Status status = declared.others(*connection, {{}, {}, {{names.due(), to.key, to.key, false}}}); !status) {
        return status;
      }
      return prepare_path(entry, to.key, route);
  }
  return {};
}

// False when the connection was lost over it.
bool Publisher::State::send(Lane& lane, PendingPublish entry) {
  // The server would close the channel, and everything on it would be sent again.
  if (const std::size_t length = entry.publication.message.body.size(); length > message_bytes) {
    complete(entry, Error{ErrorCode::kInvalidArgument,
                          "a message of " + std::to_string(length) + " bytes is too long for the server, which takes at most " +
                              std::to_string(message_bytes) + " (max_message_size)"});
    return true;
  }
  Route route;
  if (Status status = prepare(entry, route); !status) {
    const bool alive = connection->alive();
    // Refused for good, or only now: a queue whose node is just starting has no home yet.
    if (alive && is_final(status.error().code, entry.publication.to.kind)) {
      complete(entry, status);
      return true;
    }
    entry.refusal = status.error();
    if (alive) {
      send_later(lane, std::move(entry));
      return true;
    }
    lane.waiting.push_front(std::move(entry));
    lose(status.error());
    return false;
  }
  entry.awaits_count = false;
  if (entry.publication.bounded && entry.publication.to.kind == Destination::Kind::kReady) {
    const std::string& queue = entry.publication.to.name;
    const Backlogs::Room room = backlogs.room(queue, steady_clock::now());
    if (room != Backlogs::Room::kSome) {
      entry.refusal = {ErrorCode::kOverloaded, "queue " + core::quoted(queue) + " is full: it has " +
                                                   std::to_string(settings.max_length) + " jobs (max_length)"};
      entry.awaits_count = room == Backlogs::Room::kUnknown;
      if (entry.awaits_count) {
        send_later(lane, std::move(entry));
      } else {
        complete(entry, *entry.refusal);
      }
      return true;
    }
  }
  if (obeys_priorities && entry.publication.to.kind == Destination::Kind::kReady) {
    set_server_priority(entry.publication.message);
  }
  FieldTable& headers = entry.publication.message.headers;
  const bool with_path = !route.cc.empty();
  if (with_path) headers.emplace_back("CC", std::move(route.cc));
  const Status status =
      connection->publish(lane.current.channel, route.exchange, route.key, entry.publication.message,
                          entry.publication.mandatory);
  if (with_path) headers.pop_back();
  if (!status && connection->alive()) {
    complete(entry, status);
    return true;
  }
  if (entry.publication.to.kind == Destination::Kind::kReady) backlogs.sent(entry.publication.to.name);
  entry.sent = true;
  entry.returned = false;
  entry.exchange = std::move(route.exchange);
  entry.key = std::move(route.key);
  SentOn& current = lane.current;
  current.in_flight.emplace_hint(current.in_flight.end(), ++lane.last_tag, std::move(entry));
  current.open += 1;
  if (!status) lose(status.error());
  return status.has_value();
}

// One question at a time, without waiting for the answer: a queue that has no leader answers late.
void Publisher::State::ask_for_counts() {
  if (!counted.empty()) return;
  const std::optional<std::string> queue = backlogs.next_question();
  if (!queue) return;
  counted = *queue;
  if (!counting_open) {
    if (Status status = connection->open_channel(kCounting); !status) return lose(status.error());
    counting_open = true;
  }
  if (Status status = connection->ask_counts(kCounting, names.queue(counted)); !status) lose(status.error());
}

void Publisher::State::take_counts(const std::string& queue, std::uint64_t messages) {
  backlogs.counted(queue, messages, steady_clock::now());
  counted.clear();
  // Those that waited for it are the next.
  for (auto each = jobs.later.begin(); each != jobs.later.end();) {
    const auto next = std::next(each);
    PendingPublish& pending = each->second;
    if (pending.awaits_count && pending.publication.to.name == queue) {
      pending.awaits_count = false;
      jobs.waiting.push_back(std::move(pending));
      jobs.later.erase(each);
    }
    each = next;
  }
}

void Publisher::State::take_events() {
  while (connection != nullptr) {
    Result<std::optional<Event>> event = connection->next_event();
    if (!event) return lose(event.error());
    if (!event->has_value()) return;
    if (replies != nullptr && replies->take(**event)) continue;
    if (const Confirm* confirm = std::get_if<Confirm>(&**event)) {
      if (Lane* const lane = lane_of(confirm->channel)) take_confirm(*lane, *confirm);
    } else if (ReturnedMessage* returned = std::get_if<ReturnedMessage>(&**event)) {
      if (Lane* const lane = lane_of(returned->channel)) take_return(*lane, std::move(*returned));
    } else if (const Blocked* block = std::get_if<Blocked>(&**event)) {
      set_trouble("the server takes no messages: " + block->reason, true);
    } else if (std::holds_alternative<Unblocked>(**event)) {
      set_trouble("", false);
    } else if (const QueueCounted* answer = std::get_if<QueueCounted>(&**event)) {
      if (answer->channel == kCounting && !counted.empty()) take_counts(std::string(counted), answer->messages);
    } else if (const ChannelClosed* closed = std::get_if<ChannelClosed>(&**event)) {
      if (closed->channel == kCounting) {
        // The queue is gone, or may not be looked at: the server is the only one to refuse.
        counting_open = false;
        take_counts(std::string(counted), 0);
        continue;
      }
      if (Lane* const lane = lane_of(closed->channel)) {
        take_closure(*lane, closed->channel, closed->error);
      } else {
        declared.channel_closed(closed->channel);
        declared.forget();
      }
    }
  }
}

void Publisher::State::take_confirm(Lane& lane, const Confirm& confirm) {
  SentOn& sent = *lane.sent_on(confirm.channel);
  auto entry = confirm.multiple ? sent.in_flight.begin() : sent.in_flight.find(confirm.tag);
  while (entry != sent.in_flight.end() && entry->first <= confirm.tag) {
    PendingPublish pending = std::move(entry->second);
    entry = sent.in_flight.erase(entry);
    if (pending.completed) continue;  // Given up before.
    platform::require(sent.open > 0, "publishes that somebody waits for are counted");
    sent.open -= 1;
    settle(lane, pending, confirm.accepted);
  }
}

void Publisher::State::settle(Lane& lane, PendingPublish& entry, bool accepted) {
  if (entry.returned) {
    if (!std::exchange(entry.made_again, true)) {
      // Somebody has removed the queue. It is made again, once, when the server has told its consumers: one that finds a
      // queue of that name too early goes on with the old one, and gets nothing any more (seen with 3.10).
      if (forget_declared == steady_clock::time_point::max()) forget_declared = steady_clock::now() + kConsumersAreTold;
      lane.later.emplace(forget_declared, std::move(entry));
      return;
    }
    return complete(entry,
                    Error{ErrorCode::kNotFound, "no queue took the message, the server said: " + entry.return_text});
  }
  if (accepted) {
    if (!full_until.empty()) full_until.erase(entry.publication.to.name + ' ' + entry.publication.to.key);
    return complete(entry, Status());
  }
  // Full, or only new or between two leaders: tried again, on a channel that does not remember. What refuses for long is
  // taken to be full, and nobody waits for that a second time.
  const steady_clock::time_point now = steady_clock::now();
  const std::string name = entry.publication.to.name + ' ' + entry.publication.to.key;
  if (entry.refused_since == steady_clock::time_point()) entry.refused_since = now;
  entry.refusal = {ErrorCode::kOverloaded, "the server refused the message: the queue is full or not available"};
  const bool known_full = full_until.contains(name) && now < full_until[name];
  if (known_full || now - entry.refused_since > std::min<Milliseconds>(kFull, settings.patience / 2)) {
    if (!known_full) full_until[name] = now + kFullFor;
    return complete(entry, *entry.refusal);
  }
  if (now - lane.renewed > kRenewalPause) lane.renew = true;
  send_later(lane, std::move(entry));
}

void Publisher::State::send_later(Lane& lane, PendingPublish entry) {
  if (entry.deadline <= steady_clock::now()) return complete(entry, *entry.refusal);
  lane.later.emplace(steady_clock::now() + kNotNow, std::move(entry));
}

void Publisher::State::take_up_later(Lane& lane) {
  const bool all = connection == nullptr;  // Then they wait with the others.
  if (forget_declared <= steady_clock::now()) {
    declared.forget();
    forget_declared = steady_clock::time_point::max();
  }
  while (!lane.later.empty() && (all || lane.later.begin()->first <= steady_clock::now())) {
    lane.waiting.push_back(std::move(lane.later.extract(lane.later.begin()).mapped()));
  }
}

void Publisher::State::take_return(Lane& lane, ReturnedMessage returned) {
  for (auto& [tag, entry] : lane.sent_on(returned.channel)->in_flight) {
    if (entry.completed || entry.returned || entry.exchange != returned.exchange || entry.key != returned.key) continue;
    if (!is_same(entry.publication.message, returned.message)) continue;
    entry.returned = true;
    entry.return_text = std::to_string(returned.code) + " " + returned.text + " (exchange '" + returned.exchange +
                        "', key '" + returned.key + "')";
    return;
  }
}

void Publisher::State::complete(PendingPublish& entry, Status status) {
  entry.completed = true;
  // Whatever the last try came to: an earlier one may have been written. Of one that came back it is known that no
  // queue has it.
  const bool unanswered = !status && status.error().code == ErrorCode::kUnavailable && entry.sent && !entry.returned;
  if (!status && (entry.uncertain || unanswered)) status = Error{ErrorCode::kUnconfirmed, status.error().message};
  std::function<void(Status)> done = std::exchange(entry.publication.done, nullptr);
  {
    std::lock_guard lock(mutex);
    entries -= 1;
    bytes -= entry.bytes;
    if (status) stats.confirmed += 1;
    if (entries > kDrainWatched) drain_rate.drained(1, steady_clock::now());
  }
  if (done) done(std::move(status));
}

void Publisher::State::give_up_late(Lane& lane, steady_clock::time_point now) {
  if (lane.waiting.empty() && lane.current.open == 0 && lane.old.empty()) return;
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
  const bool hopeless = closing && connection == nullptr;
  // Now and then, because patient ones stand between them.
  if (hopeless || now >= lane.next_look) {
    lane.next_look = now + kLookForLate;
    std::vector<PendingPublish> late;
    std::erase_if(lane.waiting, [&](PendingPublish& entry) {
      if (entry.deadline > now && !hopeless) return false;
      late.push_back(std::move(entry));
      return true;
    });
    for (PendingPublish& entry : late) {
      if (entry.refusal && !is_blocked && connection != nullptr) {
        complete(entry, *entry.refusal);
        continue;
      }
      const bool certainly_not_written = is_blocked && !entry.sent;
      complete(entry, Error{certainly_not_written ? ErrorCode::kOverloaded : ErrorCode::kUnavailable, reason});
    }
  }
  for (SentOn& sent : lane.old) give_up_late(sent, now, reason);
  give_up_late(lane.current, now, reason);
  // A queue that never confirms must not use up the room of the others: another channel forgets about those.
  if (lane.current.in_flight.size() - lane.current.open >= settings.window) lane.renew = true;
}

void Publisher::State::give_up_late(SentOn& sent, steady_clock::time_point now, const std::string& reason) {
  for (auto& [tag, entry] : sent.in_flight) {
    if (sent.open == 0) break;
    if (entry.completed || entry.deadline == steady_clock::time_point::max()) continue;
    if (entry.deadline > now) break;
    // It stays, so that a late confirm is known to be its.
    complete(entry, Error{ErrorCode::kUnavailable, reason});
    sent.open -= 1;
  }
}

void Publisher::State::give_up_all(Lane& lane) {
  for (PendingPublish& entry : take_back_all(lane)) lane.waiting.push_back(std::move(entry));
  for (auto& [when, entry] : std::exchange(lane.later, {})) lane.waiting.push_back(std::move(entry));
  for (PendingPublish& entry : lane.waiting) complete(entry, Error{ErrorCode::kUnavailable, "the broker is closed"});
  lane.waiting.clear();
}

void Publisher::State::set_trouble(std::string text, bool is_blocked) {
  std::lock_guard lock(mutex);
  trouble = std::move(text);
  blocked = is_blocked;
}

void Publisher::State::announce(const std::string& queue) {
  if (!settings.notices) return;
  const std::int64_t now = platform::real_clock().now().wall_us;
  PendingPublish entry;
  entry.publication.to.kind = Destination::Kind::kNotices;
  entry.publication.message.body = Notice{.kind = Notice::Kind::kQueue, .name = queue, .stamp = now}.to_text();
  entry.submitted = steady_clock::now();
  entry.deadline = entry.submitted + settings.patience;
  {
    std::lock_guard lock(mutex);
    entries += 1;
  }
  notices.waiting.push_front(std::move(entry));
}

}  // namespace bide::brokers::rabbitmq
