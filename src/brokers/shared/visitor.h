// Visitor: one guest as its host sees it.

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
#include "brokers/shared/outgoing.h"
#include "platform/local_socket.h"

namespace bide::brokers::shared {

struct Visit {
  std::unique_ptr<Subscription> subscription;
  int credit = 0;
  std::optional<std::uint64_t> delivery_limit = {};

  // A guest that is stalled gets nothing more.
  void renew(bool stalled) {
    if (!delivery_limit) return subscription->set_credit(stalled ? 0 : credit);
    subscription->set_delivery_limit(stalled ? 0 : *delivery_limit);
  }
};

enum class VisitorState {
  kGreeting,  // Not a word yet.
  kThere,
  kLeaving,  // Said goodbye; is answered what it asked before.
  kStopped,  // Left in order. This and the ones below are ends.
  kCrashed,
  kCutOff,
};

struct Visitor {
  Visitor(std::uint64_t given_number, platform::LocalSocket given_socket, std::int64_t now_ms)
      : number(given_number), socket(std::move(given_socket)), since_ms(now_ms) {}

  bool ended() const { return state >= VisitorState::kStopped; }

  const std::uint64_t number;
  platform::LocalSocket socket;
  const std::int64_t since_ms;
  VisitorState state = VisitorState::kGreeting;
  FrameReader incoming;
  Outgoing outgoing;
  bool readable = false;              // As poll said.
  bool deaf = false;                  // Takes nothing any more, though it may have sent something.
  std::int64_t blocked_since_ms = 0;  // It takes nothing, though there is something. 0: it does.
  std::size_t calls = 0;              // Begun and not answered, without watches.
  std::map<std::uint64_t, GiveUp> watches;  // By the number of the call.
  bool stalled = false;  // Gets no leases until it has read what it was sent.
  bool leases_ended = false;
  std::map<std::uint64_t, Visit> subscriptions;
  Pressure pressure;  // As it was told.
};

}  // namespace bide::brokers::shared
