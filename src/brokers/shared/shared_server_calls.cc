// SharedServer, the calls of its clients: executed by the engine, whose answers come back through the task queue.

#include <utility>

#include "brokers/shared/shared_server.h"
#include "platform/clock.h"

namespace bide::brokers::shared {

namespace {

constexpr std::size_t kLeaseFrameBytes = 1 << 20;

Error too_many(const char* what) {
  return {ErrorCode::kOverloaded, std::string("this process has too many ") + what + " with the owner of the data"};
}

std::size_t bytes_of(const Lease& lease) {
  std::size_t bytes = 512 + lease.job.body.size();
  for (const auto& [name, value] : lease.job.headers) bytes += name.size() + value.size();
  for (const Step& step : lease.steps) bytes += step.name.size() + step.result.size();
  return bytes;
}

template <class Value>
bool set_flow(Session& session, const Frame& frame, void (*set)(SessionSubscription&, Value)) {
  Decoder in(frame.payload);
  const auto number = take<std::uint64_t>(in);
  const auto value = take<Value>(in);
  if (!in.done()) return false;
  const auto found = session.subscriptions.find(number);
  if (found == session.subscriptions.end()) return true;
  set(found->second, value);
  found->second.renew(session.stalled);
  return true;
}

}  // namespace

bool SharedServer::subscribe(Session& session, const Frame& frame) {
  Decoder in(frame.payload);
  const auto number = take<std::uint64_t>(in);
  auto options = take<SubscribeOptions>(in);
  if (!in.done() || session.subscriptions.contains(number)) return false;
  Status answered;
  if (session.subscriptions.size() >= limits_.subscriptions) {
    answered = too_many("subscriptions");
  } else {
    // For the engine every client is another process, whose leases survive this one.
    const bool outlives = std::exchange(options.outlives_process, true);
    const int credit = options.credit;
    auto subscribed = engine_.subscribe(std::move(options), [this, tasks = tasks_, session = session.number, number,
                                                             outlives](std::vector<Lease> leases) {
      tasks->post([this, session, number, outlives, granted_ms = platform::now_ms() - leases.front().age.count(),
                   kept = std::make_shared<std::vector<Lease>>(std::move(leases))] {
        deliver(session, number, outlives, granted_ms, std::move(*kept));
      });
    });
    if (subscribed) {
      session.subscriptions.emplace(number,
                                    SessionSubscription{.subscription = std::move(*subscribed), .credit = credit});
    } else {
      answered = subscribed.error();
    }
  }
  answer(session, frame.number, [&](Encoder& out) { put(out, answered); });
  return true;
}

bool SharedServer::unsubscribe(Session& session, const Frame& frame) {
  Decoder in(frame.payload);
  const auto number = take<std::uint64_t>(in);
  if (!in.done()) return false;
  session.subscriptions.erase(number);
  // Behind the leases that the engine has handed out before it knew.
  ++session.calls;
  tasks_->post([this, session = session.number, call = frame.number] {
    finish_call(session, call, [](Encoder& out) { put(out, Status()); });
  });
  return true;
}

bool SharedServer::set_credit(Session& session, const Frame& frame) {
  return set_flow<int>(session, frame,
                       [](SessionSubscription& subscription, int credit) { subscription.credit = credit; });
}

bool SharedServer::set_delivery_limit(Session& session, const Frame& frame) {
  return set_flow<std::uint64_t>(session, frame, [](SessionSubscription& subscription, std::uint64_t limit) {
    subscription.delivery_limit = limit;
  });
}

bool SharedServer::mark_delivered(const Frame& frame) {
  Decoder in(frame.payload);
  auto leases = take<std::vector<LeaseRef>>(in);
  if (!in.done()) return false;
  engine_.mark_delivered(std::move(leases));
  return true;
}

bool SharedServer::report_progress(const Frame& frame) {
  Decoder in(frame.payload);
  const auto lease = take<LeaseRef>(in);
  auto progress = take<Progress>(in);
  if (!in.done()) return false;
  engine_.report_progress(lease, std::move(progress));
  return true;
}

bool SharedServer::adopt_leases(Session& session, const Frame& frame) {
  Decoder in(frame.payload);
  auto leases = take<std::vector<LeaseRef>>(in);
  if (!in.done()) return false;
  for (const LeaseRef& lease : leases) session_leases_.try_emplace(lease.token, SessionLease{lease.id, session.number});
  engine_.mark_delivered(std::move(leases));
  return true;
}

bool SharedServer::extend(Session& session, const Frame& frame) {
  Decoder in(frame.payload);
  auto leases = take<std::vector<LeaseRef>>(in);
  if (!in.done()) return false;
  ++session.calls;
  auto tokens = std::make_shared<std::vector<LeaseRef>>(leases);
  engine_.extend(std::move(leases), [this, tasks = tasks_, session = session.number, call = frame.number,
                                     tokens](Result<std::vector<Extended>> result) {
    tasks->post([this, session, call, tokens, result = std::move(result)] {
      for (std::size_t i = 0; result && i < result->size(); ++i) {
        if ((*result)[i].lost) session_leases_.erase((*tokens)[i].token);
      }
      finish_call(session, call, [&](Encoder& out) { put(out, result); });
    });
  });
  return true;
}

bool SharedServer::settle(Session& session, const Frame& frame) {
  Decoder in(frame.payload);
  auto settlements = take<std::vector<Settlement>>(in);
  if (!in.done()) return false;
  ++session.calls;
  auto tokens = std::make_shared<std::vector<std::uint64_t>>();
  tokens->reserve(settlements.size());
  for (const Settlement& settlement : settlements) tokens->push_back(settlement.lease.token);
  engine_.settle(std::move(settlements), [this, tasks = tasks_, session = session.number, call = frame.number,
                                          tokens](Result<std::vector<Status>> result) {
    tasks->post([this, session, call, tokens, result = std::move(result)] {
      for (std::size_t i = 0; result && i < result->size(); ++i) {
        const Status& status = (*result)[i];
        const bool over =
            status || status.error().code == ErrorCode::kLeaseLost || status.error().code == ErrorCode::kNotFound;
        if (over) session_leases_.erase((*tokens)[i]);
      }
      finish_call(session, call, [&](Encoder& out) { put(out, result); });
    });
  });
  return true;
}

bool SharedServer::call(Session& session, const Frame& frame) {
  Reply reply = [this, tasks = tasks_, session = session.number, number = frame.number](Answer value) {
    tasks->post([this, session, number, value = std::move(value)] { finish_call(session, number, value); });
  };
  if (!execute(frame.type, frame.payload, engine_, engine_, std::move(reply))) return false;
  ++session.calls;
  return true;
}

bool SharedServer::watch(Session& session, const Frame& frame) {
  if (session.watches.contains(frame.number)) return false;
  if (session.watches.size() >= limits_.watches) {
    answer(session, frame.number, [](Encoder& out) { put(out, Result<JobInfo>(too_many("watches"))); });
    return true;
  }
  Reply reply = [this, tasks = tasks_, session = session.number, number = frame.number](Answer value) {
    tasks->post([this, session, number, value = std::move(value)] {
      const auto found = sessions_.find(session);
      // Given up while the answer was on its way: nobody waits for it.
      if (found == sessions_.end() || found->second->watches.erase(number) == 0) return;
      answer(*found->second, number, value);
    });
  };
  return execute_watch(frame.payload, engine_, std::move(reply), session.watches[frame.number]);
}

bool SharedServer::unwatch(Session& session, const Frame& frame) {
  const auto found = session.watches.find(frame.number);
  if (found != session.watches.end()) {
    found->second();
    session.watches.erase(found);
  }
  return frame.payload.empty();
}

void SharedServer::finish_call(std::uint64_t session, std::uint64_t call, const Answer& value) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  --found->second->calls;
  answer(*found->second, call, value);
}

void SharedServer::answer(Session& session, std::uint64_t number, const Answer& value) {
  if (session.send_closed) return;
  std::string frame = make_frame(FrameType::kAnswer, number, value);
  if (frame.size() > kFrameBytes) {
    frame = make_frame(FrameType::kAnswer, number, [](Encoder& out) {
      put(out, Status(Error{ErrorCode::kUnsupported, "the answer is too long for the socket of the data directory"}));
    });
  }
  session.outgoing.add(std::move(frame));
}

void SharedServer::deliver(std::uint64_t to, std::uint64_t subscription, bool outlives, std::int64_t granted_ms,
                           std::vector<Lease> leases) {
  const auto found = sessions_.find(to);
  if (found == sessions_.end() || found->second->send_closed || found->second->leases_ended) {
    // Nobody has seen them, so nobody can have begun; one that is leaving has returned what it had.
    std::vector<LeaseRef> unseen;
    for (const Lease& lease : leases) unseen.push_back({lease.job.id, lease.token});
    end_leases(std::move(unseen), engine::WorkerEnd::kStopped, 0);
    return;
  }
  Session& session = *found->second;
  for (std::size_t at = 0; at < leases.size();) {
    std::size_t bytes = 0;
    std::size_t count = 0;
    while (at + count < leases.size() && (count == 0 || bytes < kLeaseFrameBytes))
      bytes += bytes_of(leases[at + count++]);
    session.outgoing.add(make_frame(FrameType::kLeases, subscription, [&](Encoder& out) {
      put(out, static_cast<std::uint64_t>(granted_ms));
      out.count(count);
      for (std::size_t i = at; i < at + count; ++i) put(out, leases[i]);
    }));
    for (std::size_t i = at; i < at + count && !outlives; ++i) {
      session_leases_[leases[i].token] = {leases[i].job.id, to, session.outgoing.added()};
    }
    at += count;
  }
}

}  // namespace bide::brokers::shared
