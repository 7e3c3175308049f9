// Host, what its guests ask for: carried out by the engine, whose answers come back through the mailbox.

#include <utility>

#include "brokers/shared/host.h"
#include "platform/clock.h"

namespace bide::brokers::shared {

namespace {

std::int64_t now_ms() { return platform::real_clock().now().elapsed_us / 1000; }

constexpr std::size_t kLeaseFrameBytes = 1 << 20;

Error too_many(const char* what) {
  return {ErrorCode::kOverloaded, std::string("this process has too many ") + what + " with the owner of the data"};
}

std::size_t bytes_of(const Lease& lease) {
  std::size_t bytes = 512 + lease.job.body.size();
  for (const auto& [name, value] : lease.job.headers) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace

bool Host::subscribe(Visitor& visitor, const Frame& frame) {
  Decoder in(frame.payload);
  const auto number = take<std::uint64_t>(in);
  auto options = take<SubscribeOptions>(in);
  if (!in.done() || visitor.subscriptions.contains(number)) return false;
  Status answered;
  if (visitor.subscriptions.size() >= limits_.subscriptions) {
    answered = too_many("subscriptions");
  } else {
    // For the engine every guest is another process, whose leases survive this one.
    const bool outlives = std::exchange(options.outlives_process, true);
    const int credit = options.credit;
    auto subscribed = engine_.subscribe(std::move(options), [this, mailbox = mailbox_, visitor = visitor.number, number,
                                                             outlives](std::vector<Lease> leases) {
      mailbox->post([this, visitor, number, outlives, granted_ms = now_ms() - leases.front().age.count(),
                     kept = std::make_shared<std::vector<Lease>>(std::move(leases))] {
        deliver(visitor, number, outlives, granted_ms, std::move(*kept));
      });
    });
    if (subscribed) {
      visitor.subscriptions.emplace(number, Visit{.subscription = std::move(*subscribed), .credit = credit});
    } else {
      answered = subscribed.error();
    }
  }
  answer(visitor, frame.number, [&](Encoder& out) { put(out, answered); });
  return true;
}

bool Host::unsubscribe(Visitor& visitor, const Frame& frame) {
  Decoder in(frame.payload);
  const auto number = take<std::uint64_t>(in);
  if (!in.done()) return false;
  visitor.subscriptions.erase(number);
  // Behind the leases that the engine has handed out before it knew.
  ++visitor.calls;
  mailbox_->post([this, visitor = visitor.number, call = frame.number] {
    const auto found = visitors_.find(visitor);
    if (found == visitors_.end()) return;
    --found->second->calls;
    answer(*found->second, call, [](Encoder& out) { put(out, Status()); });
  });
  return true;
}

bool Host::set_credit(Visitor& visitor, const Frame& frame) {
  Decoder in(frame.payload);
  const auto number = take<std::uint64_t>(in);
  const auto credit = take<int>(in);
  if (!in.done()) return false;
  const auto found = visitor.subscriptions.find(number);
  if (found == visitor.subscriptions.end()) return true;
  found->second.credit = credit;
  found->second.renew(visitor.stalled);
  return true;
}

bool Host::set_delivery_limit(Visitor& visitor, const Frame& frame) {
  Decoder in(frame.payload);
  const auto number = take<std::uint64_t>(in);
  const auto limit = take<std::uint64_t>(in);
  if (!in.done()) return false;
  const auto found = visitor.subscriptions.find(number);
  if (found == visitor.subscriptions.end()) return true;
  found->second.delivery_limit = limit;
  found->second.renew(visitor.stalled);
  return true;
}

bool Host::mark_delivered(const Frame& frame) {
  Decoder in(frame.payload);
  auto leases = take<std::vector<LeaseRef>>(in);
  if (!in.done()) return false;
  engine_.mark_delivered(std::move(leases));
  return true;
}

bool Host::take_holding(Visitor& visitor, const Frame& frame) {
  Decoder in(frame.payload);
  auto leases = take<std::vector<LeaseRef>>(in);
  if (!in.done()) return false;
  for (const LeaseRef& lease : leases) holdings_.try_emplace(lease.token, Holding{lease.id, visitor.number});
  engine_.mark_delivered(std::move(leases));
  return true;
}

bool Host::extend(Visitor& visitor, const Frame& frame) {
  Decoder in(frame.payload);
  auto leases = take<std::vector<LeaseRef>>(in);
  if (!in.done()) return false;
  ++visitor.calls;
  auto tokens = std::make_shared<std::vector<LeaseRef>>(leases);
  engine_.extend(std::move(leases), [this, mailbox = mailbox_, visitor = visitor.number, call = frame.number,
                                     tokens](Result<std::vector<Extended>> result) {
    mailbox->post([this, visitor, call, tokens, result = std::move(result)] {
      for (std::size_t i = 0; result && i < result->size(); ++i) {
        if ((*result)[i].lost) holdings_.erase((*tokens)[i].token);
      }
      const auto found = visitors_.find(visitor);
      if (found == visitors_.end()) return;
      --found->second->calls;
      answer(*found->second, call, [&](Encoder& out) { put(out, result); });
    });
  });
  return true;
}

bool Host::settle(Visitor& visitor, const Frame& frame) {
  Decoder in(frame.payload);
  auto settlements = take<std::vector<Settlement>>(in);
  if (!in.done()) return false;
  ++visitor.calls;
  auto tokens = std::make_shared<std::vector<std::uint64_t>>();
  tokens->reserve(settlements.size());
  for (const Settlement& settlement : settlements) tokens->push_back(settlement.lease.token);
  engine_.settle(std::move(settlements), [this, mailbox = mailbox_, visitor = visitor.number, call = frame.number,
                                          tokens](Result<std::vector<Status>> result) {
    mailbox->post([this, visitor, call, tokens, result = std::move(result)] {
      for (std::size_t i = 0; result && i < result->size(); ++i) {
        const Status& status = (*result)[i];
        const bool over =
            status || status.error().code == ErrorCode::kLeaseLost || status.error().code == ErrorCode::kNotFound;
        if (over) holdings_.erase((*tokens)[i]);
      }
      const auto found = visitors_.find(visitor);
      if (found == visitors_.end()) return;
      --found->second->calls;
      answer(*found->second, call, [&](Encoder& out) { put(out, result); });
    });
  });
  return true;
}

bool Host::call(Visitor& visitor, const Frame& frame) {
  Reply reply = [this, mailbox = mailbox_, visitor = visitor.number, number = frame.number](Answer value) {
    mailbox->post([this, visitor, number, value = std::move(value)] {
      const auto found = visitors_.find(visitor);
      if (found == visitors_.end()) return;
      --found->second->calls;
      answer(*found->second, number, value);
    });
  };
  if (!carry_out(frame.type, frame.payload, engine_, engine_, std::move(reply))) return false;
  ++visitor.calls;
  return true;
}

bool Host::watch(Visitor& visitor, const Frame& frame) {
  if (visitor.watches.contains(frame.number)) return false;
  if (visitor.watches.size() >= limits_.watches) {
    answer(visitor, frame.number, [](Encoder& out) { put(out, Result<JobInfo>(too_many("watches"))); });
    return true;
  }
  Reply reply = [this, mailbox = mailbox_, visitor = visitor.number, number = frame.number](Answer value) {
    mailbox->post([this, visitor, number, value = std::move(value)] {
      const auto found = visitors_.find(visitor);
      // Given up while the answer was on its way: nobody waits for it.
      if (found == visitors_.end() || found->second->watches.erase(number) == 0) return;
      answer(*found->second, number, value);
    });
  };
  return carry_out_watch(frame.payload, engine_, std::move(reply), visitor.watches[frame.number]);
}

bool Host::unwatch(Visitor& visitor, const Frame& frame) {
  const auto found = visitor.watches.find(frame.number);
  if (found != visitor.watches.end()) {
    found->second();
    visitor.watches.erase(found);
  }
  return frame.payload.empty();
}

void Host::answer(Visitor& visitor, std::uint64_t number, const Answer& value) {
  if (visitor.deaf) return;
  std::string frame = make_frame(FrameType::kAnswer, number, value);
  if (frame.size() > kFrameBytes) {
    frame = make_frame(FrameType::kAnswer, number, [](Encoder& out) {
      put(out, Status(Error{ErrorCode::kUnsupported, "the answer is too long for the socket of the data directory"}));
    });
  }
  visitor.outgoing.add(std::move(frame));
}

void Host::deliver(std::uint64_t to, std::uint64_t subscription, bool outlives, std::int64_t granted_ms,
                   std::vector<Lease> leases) {
  const auto found = visitors_.find(to);
  if (found == visitors_.end() || found->second->deaf || found->second->leases_ended) {
    // Nobody has seen them, so nobody can have begun; one that is leaving has returned what it had.
    std::vector<LeaseRef> unseen;
    for (const Lease& lease : leases) unseen.push_back({lease.job.id, lease.token});
    end_leases(std::move(unseen), engine::WorkerEnd::kStopped, 0);
    return;
  }
  Visitor& visitor = *found->second;
  for (std::size_t at = 0; at < leases.size();) {
    std::size_t bytes = 0;
    std::size_t count = 0;
    while (at + count < leases.size() && (count == 0 || bytes < kLeaseFrameBytes))
      bytes += bytes_of(leases[at + count++]);
    visitor.outgoing.add(make_frame(FrameType::kLeases, subscription, [&](Encoder& out) {
      put(out, static_cast<std::uint64_t>(granted_ms));
      out.count(count);
      for (std::size_t i = at; i < at + count; ++i) put(out, leases[i]);
    }));
    for (std::size_t i = at; i < at + count && !outlives; ++i) {
      holdings_[leases[i].token] = {leases[i].job.id, to, visitor.outgoing.added()};
    }
    at += count;
  }
}

}  // namespace bide::brokers::shared
