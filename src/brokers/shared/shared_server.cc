#include "brokers/shared/shared_server.h"

#include <algorithm>
#include <utility>

#include "platform/clock.h"

namespace bide::brokers::shared {

namespace {

constexpr Milliseconds kServerTick{250};
constexpr std::int64_t kAnswerAtMostMs = 10'000;
constexpr std::int64_t kFlushAtMostMs = 1'000;
constexpr std::int64_t kFullAtMostMs = 1'000;

// How soon to come again changes all the time, and is worth telling with the rest only.
bool same(const Pressure& a, const Pressure& b) { return a.level == b.level && a.reason == b.reason && a.cause == b.cause; }

}  // namespace

Result<std::unique_ptr<SharedServer>> SharedServer::open(const std::string& directory, engine::Engine& engine,
                                                         SharedServerLimits limits) {
  auto listener = platform::LocalListener::listen(directory, kSocketName);
  if (!listener) return listener.error();
  return std::unique_ptr<SharedServer>(new SharedServer(std::move(*listener), engine, limits));
}

SharedServer::SharedServer(platform::LocalListener listener, engine::Engine& engine, SharedServerLimits limits)
    : limits_(limits),
      engine_(engine),
      listener_(std::make_unique<platform::LocalListener>(std::move(listener))),
      thread_([this] { run(); }) {}

SharedServer::~SharedServer() {
  closing_ = true;
  tasks_->post([] {});
  thread_.join();
}

void SharedServer::run() {
  while (true) {
    wait();
    for (const platform::Task& task : tasks_->take()) task();
    if (phase_ == Phase::kServing) {
      accept_sessions();
      for (auto& [number, session] : sessions_) serve(*session);
      send_pressure();
    }
    for (auto& [number, session] : sessions_) {
      if (session->outgoing.empty() || session->send_closed) continue;
      const SendQueue::Sent sent = session->outgoing.send_to(session->socket);
      // Not its end yet: what it has sent before may still be there to read.
      if (sent == SendQueue::Sent::kClosed) session->send_closed = true;
      if (session->send_closed) session->outgoing.clear();
      if (session->outgoing.empty()) {
        session->blocked_since_ms = 0;
      } else if (sent == SendQueue::Sent::kSome || session->blocked_since_ms == 0) {
        session->blocked_since_ms = platform::now_ms();
      }
    }
    check_timeouts();
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      if (at->second->ended()) {
        end(*at->second);
        at = sessions_.erase(at);
      } else {
        ++at;
      }
    }
    if (closing_) {
      advance_shutdown();
      if (phase_ == Phase::kFlushing && sessions_.empty()) break;
    }
  }
  listener_.reset();
  tasks_->close();
}

void SharedServer::wait() {
  std::vector<platform::Readiness> waited;
  waited.push_back({tasks_->descriptor(), true, false});
  waited.push_back({listener_->descriptor(), phase_ == Phase::kServing && !full_, false});
  bool ticking = full_ || closing_;
  for (const auto& [number, session] : sessions_) {
    const bool heard = phase_ == Phase::kServing && session->calls < limits_.calls &&
                       session->outgoing.bytes() < limits_.backlog_bytes && session->state != SessionState::kLeaving;
    waited.push_back({session->socket.descriptor(), heard, !session->outgoing.empty()});
    ticking = ticking || !session->outgoing.empty() || session->state == SessionState::kHandshake ||
              session->pressure.level != Pressure::Level::kOk;
  }
  platform::wait_ready(waited, ticking ? std::optional(kServerTick) : std::nullopt);
  if (waited[0].read) tasks_->clear_wakeup();
  std::size_t at = 2;
  for (auto& [number, session] : sessions_) session->readable = waited[at++].read;
}

void SharedServer::accept_sessions() {
  full_ = sessions_.size() >= limits_.clients;
  while (!full_) {
    auto accepted = listener_->accept();
    if (!accepted) {
      full_ = true;  // No descriptors left: looked at again with the next tick.
      return;
    }
    if (!*accepted) return;
    if (!(*accepted)->is_trusted()) continue;
    const std::uint64_t number = ++last_session_;
    sessions_.emplace(number, std::make_unique<Session>(number, std::move(**accepted), platform::now_ms()));
    full_ = sessions_.size() >= limits_.clients;
  }
}

// Reads what it has sent and does what that asks for, as far as it may have more.
void SharedServer::serve(Session& session) {
  while (!session.ended() && session.state != SessionState::kLeaving && session.calls < limits_.calls &&
         session.outgoing.bytes() < limits_.backlog_bytes) {
    Frame frame;
    const FrameReader::Next next = session.incoming.next(frame);
    if (next == FrameReader::Next::kFrame) {
      const bool understood =
          session.state == SessionState::kHandshake ? handshake(session, frame) : take_frame(session, frame);
      if (!understood) session.state = SessionState::kCutOff;
      continue;
    }
    if (next == FrameReader::Next::kTooLong) {
      session.state = SessionState::kCutOff;
      return;
    }
    if (!std::exchange(session.readable, false)) return;  // Once in a round: the others want their turn too.
    const platform::Transfer transfer = session.socket.receive(session.incoming.room(kReadBytes), kReadBytes);
    if (transfer.closed) {
      session.state = session.state == SessionState::kHandshake ? SessionState::kCutOff : SessionState::kCrashed;
      return;
    }
    session.incoming.filled(transfer.bytes);
  }
}

bool SharedServer::handshake(Session& session, const Frame& frame) {
  Decoder in(frame.payload);
  const std::string_view magic = in.string();
  const std::uint32_t version = in.u32();
  if (frame.type != FrameType::kHello || !in.ok() || magic != kMagic) return false;
  session.outgoing.add(make_frame(FrameType::kHello, 0, [&](Encoder& out) {
    out.string(kMagic);
    out.u32(kProtocolVersion);
    put(out, engine_.capabilities());
  }));
  // Of another version: it sees ours and leaves.
  session.state = version == kProtocolVersion ? SessionState::kOpen : SessionState::kLeaving;
  return true;
}

bool SharedServer::take_frame(Session& session, const Frame& frame) {
  switch (frame.type) {
    case FrameType::kSubscribe:
      return subscribe(session, frame);
    case FrameType::kUnsubscribe:
      return unsubscribe(session, frame);
    case FrameType::kSetCredit:
      return set_credit(session, frame);
    case FrameType::kSetDeliveryLimit:
      return set_delivery_limit(session, frame);
    case FrameType::kMarkDelivered:
      return mark_delivered(frame);
    case FrameType::kReportProgress:
      return report_progress(frame);
    case FrameType::kHeldLeases:
      return adopt_leases(session, frame);
    case FrameType::kExtend:
      return extend(session, frame);
    case FrameType::kSettle:
      return settle(session, frame);
    case FrameType::kWatch:
      return watch(session, frame);
    case FrameType::kUnwatch:
      return unwatch(session, frame);
    case FrameType::kGoodbye:
      session.state = SessionState::kLeaving;
      return frame.payload.empty();
    default:
      return call(session, frame);
  }
}

// Its end was noticed: nothing more is given to it, and what it held is seen to.
void SharedServer::end(Session& session) {
  session.subscriptions.clear();
  for (const auto& [number, give_up] : std::exchange(session.watches, {})) {
    if (give_up) give_up();
  }
  if (session.leases_ended) return;
  std::vector<LeaseRef> held;
  std::vector<LeaseRef> unsent;  // Nobody has seen them, so nobody can have begun.
  for (auto at = session_leases_.begin(); at != session_leases_.end();) {
    if (at->second.session == session.number) {
      (at->second.sent_at > session.outgoing.sent() ? unsent : held).push_back({at->second.id, at->first});
      at = session_leases_.erase(at);
    } else {
      ++at;
    }
  }
  session.leases_ended = true;
  if (!unsent.empty()) end_leases(std::move(unsent), engine::WorkerEnd::kStopped, session.number);
  if (held.empty() || session.state == SessionState::kCutOff) return;
  const auto how = session.state == SessionState::kCrashed ? engine::WorkerEnd::kCrashed : engine::WorkerEnd::kStopped;
  end_leases(std::move(held), how, session.number);
}

void SharedServer::end_leases(std::vector<LeaseRef> leases, engine::WorkerEnd how, std::uint64_t session) {
  ++ends_pending_;
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) ++found->second->calls;
  engine_.end_leases(std::move(leases), how, [this, tasks = tasks_, session](const Status&) {
    tasks->post([this, session] {
      --ends_pending_;
      const auto there = sessions_.find(session);
      if (there != sessions_.end()) --there->second->calls;
    });
  });
}

void SharedServer::send_pressure() {
  if (sessions_.empty()) return;
  const Pressure pressure = engine_.pressure();
  for (auto& [number, session] : sessions_) {
    if (session->state != SessionState::kOpen || session->send_closed || same(pressure, session->pressure)) continue;
    session->pressure = pressure;
    session->outgoing.add(make_frame(FrameType::kPressure, 0, [&](Encoder& out) { put(out, pressure); }));
  }
}

void SharedServer::check_timeouts() {
  const std::int64_t now = platform::now_ms();
  for (auto& [number, each] : sessions_) {
    Session& session = *each;
    if (session.ended()) continue;
    const bool stalled =
        session.outgoing.bytes() > (session.stalled ? limits_.backlog_bytes / 4 : limits_.backlog_bytes);
    if (stalled != session.stalled) {
      session.stalled = stalled;
      for (auto& [name, subscription] : session.subscriptions) subscription.renew(stalled);
    }
    const std::int64_t idle = session.blocked_since_ms == 0 ? 0 : now - session.blocked_since_ms;
    const bool full = session.outgoing.bytes() > limits_.backlog_most_bytes && idle > kFullAtMostMs;
    const bool late = session.state == SessionState::kHandshake && now - session.since_ms > limits_.handshake.count();
    if (full || late || idle > limits_.silence.count()) session.state = SessionState::kCutOff;
    if (session.state == SessionState::kLeaving && phase_ == Phase::kServing) {
      if (!session.leases_ended) end(session);
      if (session.calls == 0 && session.outgoing.empty()) session.state = SessionState::kStopped;
    }
  }
}

// Step by step: nothing new, all answers, goodbye, and then they are let go.
void SharedServer::advance_shutdown() {
  const std::int64_t now = platform::now_ms();
  if (phase_ == Phase::kServing) {
    // Once more around: an end that was there before ours is noticed.
    if (!std::exchange(closing_seen_, true)) {
      tasks_->post([] {});
      return;
    }
    phase_ = Phase::kAnswering;
    closing_since_ms_ = now;
    for (auto& [number, session] : sessions_) {
      if (session->state == SessionState::kLeaving) {
        if (!session->leases_ended) end(*session);
      } else {
        session->subscriptions.clear();
      }
    }
    // The engine has posted the last leases; they come before this.
    ++ends_pending_;
    tasks_->post([this] { --ends_pending_; });
    return;
  }
  if (phase_ == Phase::kAnswering) {
    const bool answered = ends_pending_ == 0 && std::all_of(sessions_.begin(), sessions_.end(),
                                                            [](const auto& each) { return each.second->calls == 0; });
    if (!answered && now - closing_since_ms_ < kAnswerAtMostMs) return;
    phase_ = Phase::kFlushing;
    closing_since_ms_ = now;
    for (auto& [number, session] : sessions_) {
      if (!session->send_closed) session->outgoing.add(make_frame(FrameType::kGoodbye, 0));
    }
    tasks_->post([] {});
    return;
  }
  const bool over = now - closing_since_ms_ > kFlushAtMostMs;
  std::erase_if(sessions_, [over](const auto& each) { return over || each.second->outgoing.empty(); });
}

}  // namespace bide::brokers::shared
