// SharedClient, its subscriptions and the leases that come of them.

#include <algorithm>
#include <utility>

#include "bide/wait.h"
#include "brokers/shared/shared_client.h"
#include "platform/clock.h"
#include "platform/fatal.h"

namespace bide::brokers::shared {

namespace {

constexpr std::int64_t kHeldCheckMs = 100;  // All of them are looked at, so not more often than that.

}  // namespace

// What a subscriber holds in its hands; it may outlive the store.
class SharedClient::Handle : public Subscription {
 public:
  Handle(std::shared_ptr<SharedClient> client, std::uint64_t number) : client_(std::move(client)), number_(number) {}
  ~Handle() override { client_->unsubscribe(number_); }
  void set_credit(int credit) override { client_->set_credit(number_, credit); }
  void set_delivery_limit(std::uint64_t deliveries) override { client_->set_delivery_limit(number_, deliveries); }

 private:
  const std::shared_ptr<SharedClient> client_;
  const std::uint64_t number_;
};

Result<std::unique_ptr<Subscription>> SharedClient::subscribe(SubscribeOptions options, LeaseSink sink) {
  const std::uint64_t number = ++last_number_;
  std::string frame = make_frame(FrameType::kSubscribe, number, [&](Encoder& out) { put(out, number, options); });
  if (frame.size() > kFrameBytes) return Error{ErrorCode::kInvalidArgument, "queues: too many"};
  {
    std::unique_lock lock(mutex_);
    if (state_ == State::kOwner) {
      Broker* const broker = local_owner_.broker;
      lock.unlock();
      return broker->subscribe(std::move(options), std::move(sink));
    }
    Subscribed& subscribed = subscriptions_[number];
    subscribed.credit = options.credit;
    subscribed.options = std::move(options);
    subscribed.sink = std::make_shared<const LeaseSink>(std::move(sink));
  }
  const auto start = [&](const Completion<void>& done) {
    submit(FrameType::kSubscribe, number, std::move(frame), [this, number, done](Result<std::string_view> payload) {
      Status answered;
      if (payload) {
        Decoder in(*payload);
        answered = take<Status>(in);
      } else {
        answered = payload.error();
      }
      {
        std::lock_guard lock(mutex_);
        const auto found = subscriptions_.find(number);
        if (found != subscriptions_.end() && answered) found->second.established = true;
        if (found != subscriptions_.end() && !answered) subscriptions_.erase(found);
      }
      done(answered);
    });
  };
  if (std::this_thread::get_id() == thread_.get_id()) {
    start([](const Status&) {});  // It cannot wait for itself.
  } else if (const Status answered = wait<void>(start); !answered) {
    return answered.error();
  }
  return std::unique_ptr<Subscription>(new Handle(shared_from_this(), number));
}

void SharedClient::unsubscribe(std::uint64_t number) {
  std::unique_ptr<Subscription> inner;  // Destroyed without the lock.
  std::unique_lock lock(mutex_);
  auto found = subscriptions_.find(number);
  if (found == subscriptions_.end()) return;
  if (state_ == State::kConnected && !closing_) {
    found->second.ended = true;
    const std::uint64_t call = ++last_number_;
    std::string frame = make_frame(FrameType::kUnsubscribe, call, [&](Encoder& out) { put(out, number); });
    if (std::this_thread::get_id() == thread_.get_id()) {
      send_one_way(std::move(frame));
    } else {
      lock.unlock();
      // Leases that are under way still reach the sink; after the answer there are none.
      (void)wait<void>([&](const Completion<void>& done) {
        submit(FrameType::kUnsubscribe, call, std::move(frame), [done](const Result<std::string_view>&) { done({}); });
      });
      lock.lock();
    }
    found = subscriptions_.find(number);
    if (found == subscriptions_.end()) return;
  }
  inner = std::move(found->second.inner);
  subscriptions_.erase(found);
  // Not answered yet, as it was made by the client's own thread: the next owner must not hear of it.
  if (const auto call = calls_.find(number); call != calls_.end()) {
    unanswered_bytes_ -= call->second.frame->size();
    calls_.erase(call);
  }
  lock.unlock();
}

void SharedClient::set_credit(std::uint64_t number, int credit) {
  std::lock_guard lock(mutex_);
  const auto found = subscriptions_.find(number);
  if (found == subscriptions_.end()) return;
  found->second.credit = credit;
  renew_credit(number, found->second);
}

void SharedClient::set_delivery_limit(std::uint64_t number, std::uint64_t deliveries) {
  std::lock_guard lock(mutex_);
  const auto found = subscriptions_.find(number);
  if (found == subscriptions_.end()) return;
  found->second.delivery_limit = deliveries;
  renew_credit(number, found->second);
}

void SharedClient::mark_delivered(std::vector<LeaseRef> leases) {
  std::unique_lock lock(mutex_);
  if (state_ == State::kOwner) {
    Broker* const broker = local_owner_.broker;
    lock.unlock();
    return broker->mark_delivered(std::move(leases));
  }
  for (const LeaseRef& lease : leases) {
    if (const auto held = held_.find(lease.token); held != held_.end()) held->second.delivered = true;
  }
  if (state_ != State::kConnected) return;
  send_one_way(make_frame(FrameType::kMarkDelivered, 0, [&](Encoder& out) { put(out, leases); }));
}

void SharedClient::report_progress(LeaseRef lease, Progress progress) {
  std::unique_lock lock(mutex_);
  if (state_ == State::kOwner) {
    Broker* const broker = local_owner_.broker;
    lock.unlock();
    return broker->report_progress(lease, std::move(progress));
  }
  if (state_ != State::kConnected) return;
  send_one_way(make_frame(FrameType::kReportProgress, 0, [&](Encoder& out) { put(out, lease, progress); }));
}

void SharedClient::renew_credit(std::uint64_t number, Subscribed& subscribed) {
  if (subscribed.delivery_limit) {
    const std::uint64_t limit = subscribed.limit_at_owner();
    if (subscribed.inner != nullptr) return subscribed.inner->set_delivery_limit(limit);
    if (state_ != State::kConnected) return;
    return send_one_way(make_frame(FrameType::kSetDeliveryLimit, 0, [&](Encoder& out) { put(out, number, limit); }));
  }
  if (subscribed.inner != nullptr) {
    subscribed.inner->set_credit(subscribed.rest());
  } else if (state_ == State::kConnected) {
    send_one_way(make_frame(FrameType::kSetCredit, 0, [&](Encoder& out) { put(out, number, subscribed.rest()); }));
  }
}

void SharedClient::release(const std::vector<std::uint64_t>& tokens) {
  std::lock_guard lock(mutex_);
  for (const std::uint64_t token : tokens) {
    if (const auto found = held_.find(token); found != held_.end()) release(found);
  }
}

SharedClient::HeldLeases::iterator SharedClient::release(HeldLeases::iterator held) {
  const auto subscribed = subscriptions_.find(held->second.subscription);
  if (held->second.carried && subscribed != subscriptions_.end()) {
    platform::require(subscribed->second.carried > 0, "a subscription counts the leases that it carries");
    --subscribed->second.carried;
    renew_credit(subscribed->first, subscribed->second);
  }
  return held_.erase(held);
}

void SharedClient::renew(const std::vector<std::uint64_t>& tokens) {
  const std::int64_t now = platform::now_ms();
  std::lock_guard lock(mutex_);
  for (const std::uint64_t token : tokens) {
    if (const auto found = held_.find(token); found != held_.end()) renew(found->second, now);
  }
}

void SharedClient::renew(Held& held, std::int64_t since_ms) {
  held.deadline_ms = since_ms + held.lease_ms;
  held_check_ms_ = std::min(held_check_ms_, held.deadline_ms);
}

// The owner has given them to somebody else by now: whoever had them here does not speak of them any more.
void SharedClient::expire_held(std::int64_t now) {
  if (now < held_check_ms_) return;
  std::int64_t earliest = kNever;
  for (auto at = held_.begin(); at != held_.end();) {
    if (now >= at->second.deadline_ms) {
      at = release(at);
    } else {
      earliest = std::min(earliest, at->second.deadline_ms);
      ++at;
    }
  }
  held_check_ms_ = earliest == kNever ? kNever : std::max(earliest, now + kHeldCheckMs);
  check_carried();
}

void SharedClient::check_carried() const {
  std::map<std::uint64_t, int> carried;
  for (const auto& [token, held] : held_) carried[held.subscription] += held.carried ? 1 : 0;
  for (const auto& [number, subscribed] : subscriptions_) {
    platform::require(subscribed.carried == carried[number], "a subscription counts the leases that it carries");
  }
}

Completion<std::vector<Extended>> SharedClient::tracking(const std::vector<LeaseRef>& leases,
                                                         Completion<std::vector<Extended>> done) {
  std::vector<std::uint64_t> tokens;
  for (const LeaseRef& lease : leases) tokens.push_back(lease.token);
  return [this, tokens = std::move(tokens), done = std::move(done)](Result<std::vector<Extended>> result) {
    std::vector<std::uint64_t> over;
    std::vector<std::uint64_t> renewed;
    for (std::size_t i = 0; result && i < std::min(tokens.size(), result->size()); ++i) {
      ((*result)[i].lost ? over : renewed).push_back(tokens[i]);
    }
    release(over);
    renew(renewed);
    done(std::move(result));
  };
}

Completion<std::vector<Status>> SharedClient::tracking(const std::vector<Settlement>& settlements,
                                                       Completion<std::vector<Status>> done) {
  std::vector<std::uint64_t> tokens;
  for (const Settlement& settlement : settlements) tokens.push_back(settlement.lease.token);
  return [this, tokens = std::move(tokens), done = std::move(done)](Result<std::vector<Status>> result) {
    std::vector<std::uint64_t> over;
    for (std::size_t i = 0; result && i < std::min(tokens.size(), result->size()); ++i) {
      const Status& status = (*result)[i];
      if (status || status.error().code == ErrorCode::kLeaseLost || status.error().code == ErrorCode::kNotFound) {
        over.push_back(tokens[i]);
      }
    }
    release(over);
    done(std::move(result));
  };
}

}  // namespace bide::brokers::shared
