#include "brokers/shared/host.h"

#include <algorithm>
#include <utility>

#include "platform/clock.h"

namespace bide::brokers::shared {

namespace {

constexpr std::size_t kReadBytes = 256 << 10;
constexpr Milliseconds kTick{250};
constexpr std::int64_t kAnswerAtMostMs = 10'000;
constexpr std::int64_t kFlushAtMostMs = 1'000;
constexpr std::int64_t kFullAtMostMs = 1'000;

std::int64_t now_ms() { return platform::real_clock().now().elapsed_us / 1000; }

bool same(const Pressure& a, const Pressure& b) {
  return a.level == b.level && a.reason == b.reason && a.retry_after == b.retry_after;
}

}  // namespace

Result<std::unique_ptr<Host>> Host::open(const std::string& directory, engine::Engine& engine, HostLimits limits) {
  auto listener = platform::LocalListener::listen(directory, kSocketName);
  if (!listener) return listener.error();
  return std::unique_ptr<Host>(new Host(std::move(*listener), engine, limits));
}

Host::Host(platform::LocalListener listener, engine::Engine& engine, HostLimits limits)
    : limits_(limits),
      engine_(engine),
      listener_(std::make_unique<platform::LocalListener>(std::move(listener))),
      thread_([this] { run(); }) {}

Host::~Host() {
  closing_ = true;
  mailbox_->post([] {});
  thread_.join();
}

void Host::run() {
  while (true) {
    wait();
    for (const Mailbox::Letter& letter : mailbox_->take()) letter();
    if (phase_ == Phase::kServing) {
      let_in();
      for (auto& [number, visitor] : visitors_) serve(*visitor);
      tell_pressure();
    }
    for (auto& [number, visitor] : visitors_) {
      if (visitor->outgoing.empty() || visitor->deaf) continue;
      const Outgoing::Sent sent = visitor->outgoing.send_to(visitor->socket);
      // Not its end yet: what it has sent before may still be there to read.
      if (sent == Outgoing::Sent::kClosed) visitor->deaf = true;
      if (visitor->deaf) visitor->outgoing.clear();
      if (visitor->outgoing.empty()) {
        visitor->blocked_since_ms = 0;
      } else if (sent == Outgoing::Sent::kSome || visitor->blocked_since_ms == 0) {
        visitor->blocked_since_ms = now_ms();
      }
    }
    watch_the_clock();
    for (auto at = visitors_.begin(); at != visitors_.end();) {
      if (at->second->ended()) {
        end(*at->second);
        at = visitors_.erase(at);
      } else {
        ++at;
      }
    }
    if (closing_) {
      close_in_order();
      if (phase_ == Phase::kFlushing && visitors_.empty()) break;
    }
  }
  listener_.reset();
  mailbox_->close();
}

void Host::wait() {
  std::vector<platform::Readiness> waited;
  waited.push_back({mailbox_->descriptor(), true, false});
  waited.push_back({listener_->descriptor(), phase_ == Phase::kServing && !crowded_, false});
  bool ticking = crowded_ || closing_;
  for (const auto& [number, visitor] : visitors_) {
    const bool heard = phase_ == Phase::kServing && visitor->calls < limits_.calls &&
                       visitor->outgoing.bytes() < limits_.backlog_bytes && visitor->state != VisitorState::kLeaving;
    waited.push_back({visitor->socket.descriptor(), heard, !visitor->outgoing.empty()});
    ticking = ticking || !visitor->outgoing.empty() || visitor->state == VisitorState::kGreeting ||
              visitor->pressure.level != Pressure::Level::kOk;
  }
  platform::wait_ready(waited, ticking ? std::optional(kTick) : std::nullopt);
  std::size_t at = 2;
  for (auto& [number, visitor] : visitors_) visitor->readable = waited[at++].read;
}

void Host::let_in() {
  crowded_ = visitors_.size() >= limits_.guests;
  while (!crowded_) {
    auto accepted = listener_->accept();
    if (!accepted) {
      crowded_ = true;  // No descriptors left: looked at again with the next tick.
      return;
    }
    if (!*accepted) return;
    if (!(*accepted)->is_trusted()) continue;
    const std::uint64_t number = ++last_visitor_;
    visitors_.emplace(number, std::make_unique<Visitor>(number, std::move(**accepted), now_ms()));
    crowded_ = visitors_.size() >= limits_.guests;
  }
}

// Reads what it has sent and does what that asks for, as far as it may have more.
void Host::serve(Visitor& visitor) {
  while (!visitor.ended() && visitor.state != VisitorState::kLeaving && visitor.calls < limits_.calls &&
         visitor.outgoing.bytes() < limits_.backlog_bytes) {
    Frame frame;
    const FrameReader::Next next = visitor.incoming.next(frame);
    if (next == FrameReader::Next::kFrame) {
      const bool understood =
          visitor.state == VisitorState::kGreeting ? greet(visitor, frame) : take_frame(visitor, frame);
      if (!understood) visitor.state = VisitorState::kCutOff;
      continue;
    }
    if (next == FrameReader::Next::kTooLong) {
      visitor.state = VisitorState::kCutOff;
      return;
    }
    if (!std::exchange(visitor.readable, false)) return;  // Once in a round: the others want their turn too.
    const platform::Transfer transfer = visitor.socket.receive(visitor.incoming.room(kReadBytes), kReadBytes);
    if (transfer.closed) {
      visitor.state = visitor.state == VisitorState::kGreeting ? VisitorState::kCutOff : VisitorState::kCrashed;
      return;
    }
    visitor.incoming.filled(transfer.bytes);
  }
}

bool Host::greet(Visitor& visitor, const Frame& frame) {
  Decoder in(frame.payload);
  const std::string_view magic = in.string();
  const std::uint32_t version = in.u32();
  if (frame.type != FrameType::kHello || !in.ok() || magic != kMagic) return false;
  visitor.outgoing.add(make_frame(FrameType::kHello, 0, [&](Encoder& out) {
    out.string(kMagic);
    out.u32(kProtocolVersion);
    put(out, engine_.capabilities());
  }));
  // Of another version: it sees ours and leaves.
  visitor.state = version == kProtocolVersion ? VisitorState::kThere : VisitorState::kLeaving;
  return true;
}

bool Host::take_frame(Visitor& visitor, const Frame& frame) {
  switch (frame.type) {
    case FrameType::kSubscribe:
      return subscribe(visitor, frame);
    case FrameType::kUnsubscribe:
      return unsubscribe(visitor, frame);
    case FrameType::kSetCredit:
      return set_credit(visitor, frame);
    case FrameType::kSetDeliveryLimit:
      return set_delivery_limit(visitor, frame);
    case FrameType::kMarkDelivered:
      return mark_delivered(frame);
    case FrameType::kHolding:
      return take_holding(visitor, frame);
    case FrameType::kExtend:
      return extend(visitor, frame);
    case FrameType::kSettle:
      return settle(visitor, frame);
    case FrameType::kWatch:
      return watch(visitor, frame);
    case FrameType::kUnwatch:
      return unwatch(visitor, frame);
    case FrameType::kGoodbye:
      visitor.state = VisitorState::kLeaving;
      return frame.payload.empty();
    default:
      return call(visitor, frame);
  }
}

// Its end was noticed: nothing more is given to it, and what it held is seen to.
void Host::end(Visitor& visitor) {
  visitor.subscriptions.clear();
  for (const auto& [number, give_up] : std::exchange(visitor.watches, {})) {
    if (give_up) give_up();
  }
  if (visitor.leases_ended) return;
  std::vector<LeaseRef> held;
  std::vector<LeaseRef> unsent;  // Nobody has seen them, so nobody can have begun.
  for (auto at = holdings_.begin(); at != holdings_.end();) {
    if (at->second.visitor == visitor.number) {
      (at->second.sent_at > visitor.outgoing.sent() ? unsent : held).push_back({at->second.id, at->first});
      at = holdings_.erase(at);
    } else {
      ++at;
    }
  }
  visitor.leases_ended = true;
  if (!unsent.empty()) end_leases(std::move(unsent), engine::WorkerEnd::kStopped, visitor.number);
  if (held.empty() || visitor.state == VisitorState::kCutOff) return;
  const auto how = visitor.state == VisitorState::kCrashed ? engine::WorkerEnd::kCrashed : engine::WorkerEnd::kStopped;
  end_leases(std::move(held), how, visitor.number);
}

void Host::end_leases(std::vector<LeaseRef> leases, engine::WorkerEnd how, std::uint64_t visitor) {
  ++ends_pending_;
  const auto found = visitors_.find(visitor);
  if (found != visitors_.end()) ++found->second->calls;
  engine_.end_leases(std::move(leases), how, [this, mailbox = mailbox_, visitor](const Status&) {
    mailbox->post([this, visitor] {
      --ends_pending_;
      const auto there = visitors_.find(visitor);
      if (there != visitors_.end()) --there->second->calls;
    });
  });
}

void Host::tell_pressure() {
  if (visitors_.empty()) return;
  const Pressure pressure = engine_.pressure();
  for (auto& [number, visitor] : visitors_) {
    if (visitor->state != VisitorState::kThere || visitor->deaf || same(pressure, visitor->pressure)) continue;
    visitor->pressure = pressure;
    visitor->outgoing.add(make_frame(FrameType::kPressure, 0, [&](Encoder& out) { put(out, pressure); }));
  }
}

void Host::watch_the_clock() {
  const std::int64_t now = now_ms();
  for (auto& [number, each] : visitors_) {
    Visitor& visitor = *each;
    if (visitor.ended()) continue;
    const bool stalled =
        visitor.outgoing.bytes() > (visitor.stalled ? limits_.backlog_bytes / 4 : limits_.backlog_bytes);
    if (stalled != visitor.stalled) {
      visitor.stalled = stalled;
      for (auto& [name, visit] : visitor.subscriptions) visit.renew(stalled);
    }
    const std::int64_t idle = visitor.blocked_since_ms == 0 ? 0 : now - visitor.blocked_since_ms;
    const bool full = visitor.outgoing.bytes() > limits_.backlog_most_bytes && idle > kFullAtMostMs;
    const bool late = visitor.state == VisitorState::kGreeting && now - visitor.since_ms > limits_.greeting.count();
    if (full || late || idle > limits_.silence.count()) visitor.state = VisitorState::kCutOff;
    if (visitor.state == VisitorState::kLeaving && phase_ == Phase::kServing) {
      if (!visitor.leases_ended) end(visitor);
      if (visitor.calls == 0 && visitor.outgoing.empty()) visitor.state = VisitorState::kStopped;
    }
  }
}

// Step by step: nothing new, all answers, goodbye, and then they are let go.
void Host::close_in_order() {
  const std::int64_t now = now_ms();
  if (phase_ == Phase::kServing) {
    // Once more around: an end that was there before ours is noticed.
    if (!std::exchange(closing_seen_, true)) return mailbox_->post([] {});
    phase_ = Phase::kAnswering;
    closing_since_ms_ = now;
    for (auto& [number, visitor] : visitors_) {
      if (visitor->state == VisitorState::kLeaving) {
        if (!visitor->leases_ended) end(*visitor);
      } else {
        visitor->subscriptions.clear();
      }
    }
    // The engine has posted the last leases; they come before this.
    ++ends_pending_;
    mailbox_->post([this] { --ends_pending_; });
    return;
  }
  if (phase_ == Phase::kAnswering) {
    const bool answered = ends_pending_ == 0 && std::all_of(visitors_.begin(), visitors_.end(),
                                                            [](const auto& each) { return each.second->calls == 0; });
    if (!answered && now - closing_since_ms_ < kAnswerAtMostMs) return;
    phase_ = Phase::kFlushing;
    closing_since_ms_ = now;
    for (auto& [number, visitor] : visitors_) {
      if (!visitor->deaf) visitor->outgoing.add(make_frame(FrameType::kGoodbye, 0));
    }
    mailbox_->post([] {});
    return;
  }
  const bool over = now - closing_since_ms_ > kFlushAtMostMs;
  std::erase_if(visitors_, [over](const auto& each) { return over || each.second->outgoing.empty(); });
}

}  // namespace bide::brokers::shared
