// Session: one client as the server sees it.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "brokers/shared/calls.h"
#include "brokers/shared/frame.h"
#include "brokers/shared/send_queue.h"
#include "platform/local_socket.h"

namespace bide::brokers::shared {

struct SessionSubscription {
  std::unique_ptr<Subscription> subscription;
  int credit = 0;
  std::optional<std::uint64_t> delivery_limit = {};

  // A client that does not read what it was sent gets no more leases.
  void renew(bool stalled) {
    if (!delivery_limit) return subscription->set_credit(stalled ? 0 : credit);
    subscription->set_delivery_limit(stalled ? 0 : *delivery_limit);
  }
};

enum class SessionState {
  kHandshake,  // Has not said hello yet.
  kOpen,
  kLeaving,  // Said goodbye; is answered what it asked before.
  kStopped,  // Left in order. This and the ones below are ends.
  kCrashed,
  kCutOff,
};

struct Session {
  Session(std::uint64_t given_number, platform::LocalSocket given_socket, std::int64_t now_ms)
      : number(given_number), socket(std::move(given_socket)), since_ms(now_ms) {}

  bool ended() const { return state >= SessionState::kStopped; }

  const std::uint64_t number;
  platform::LocalSocket socket;
  const std::int64_t since_ms;
  SessionState state = SessionState::kHandshake;
  FrameReader incoming;
  SendQueue outgoing;
  bool readable = false;                    // As poll said.
  bool send_closed = false;                 // Takes nothing any more, though it may have sent something.
  std::int64_t blocked_since_ms = 0;        // It takes nothing, though there is something. 0: it does.
  std::size_t calls = 0;                    // Begun and not answered, without watches.
  std::map<std::uint64_t, GiveUp> watches;  // By the number of the call.
  bool stalled = false;                     // Gets no leases until it has read what it was sent.
  bool leases_ended = false;
  std::map<std::uint64_t, SessionSubscription> subscriptions;
  Pressure pressure;  // As it was told.
};

}  // namespace bide::brokers::shared
