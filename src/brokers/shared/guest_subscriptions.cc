// Guest, its subscriptions and the leases that come of them.

#include <algorithm>
#include <utility>

#include "bide/wait.h"
#include "brokers/shared/guest.h"

namespace bide::brokers::shared {

// What a subscriber holds in its hands; it may outlive the store.
class Guest::Handle : public Subscription {
 public:
  Handle(std::shared_ptr<Guest> guest, std::uint64_t number) : guest_(std::move(guest)), number_(number) {}
  ~Handle() override { guest_->unsubscribe(number_); }
  void set_credit(int credit) override { guest_->set_credit(number_, credit); }

 private:
  const std::shared_ptr<Guest> guest_;
  const std::uint64_t number_;
};

Result<std::unique_ptr<Subscription>> Guest::subscribe(SubscribeOptions options, LeaseSink sink) {
  const std::uint64_t number = ++last_number_;
  std::string frame = make_frame(FrameType::kSubscribe, number, [&](Encoder& out) { put(out, number, options); });
  if (frame.size() > kFrameBytes) return Error{ErrorCode::kInvalidArgument, "queues: too many"};
  {
    std::unique_lock lock(mutex_);
    if (state_ == State::kSucceeded) {
      Broker* const broker = successor_.broker;
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

void Guest::unsubscribe(std::uint64_t number) {
  std::unique_ptr<Subscription> inner;  // Destroyed without the lock.
  std::unique_lock lock(mutex_);
  auto found = subscriptions_.find(number);
  if (found == subscriptions_.end()) return;
  if (state_ == State::kConnected && !closing_) {
    found->second.ended = true;
    const std::uint64_t call = ++last_number_;
    std::string frame = make_frame(FrameType::kUnsubscribe, call, [&](Encoder& out) { put(out, number); });
    if (std::this_thread::get_id() == thread_.get_id()) {
      say(std::move(frame));
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
  lock.unlock();
}

void Guest::set_credit(std::uint64_t number, int credit) {
  std::lock_guard lock(mutex_);
  const auto found = subscriptions_.find(number);
  if (found == subscriptions_.end()) return;
  found->second.credit = credit;
  renew_credit(number, found->second);
}

void Guest::renew_credit(std::uint64_t number, Subscribed& subscribed) {
  if (subscribed.inner != nullptr) {
    subscribed.inner->set_credit(subscribed.rest());
  } else if (state_ == State::kConnected) {
    say(make_frame(FrameType::kSetCredit, 0, [&](Encoder& out) { put(out, number, subscribed.rest()); }));
  }
}

void Guest::release(const std::vector<std::uint64_t>& tokens) {
  std::lock_guard lock(mutex_);
  for (const std::uint64_t token : tokens) {
    const auto found = held_.find(token);
    if (found == held_.end()) continue;
    const auto subscribed = subscriptions_.find(found->second.subscription);
    if (found->second.carried && subscribed != subscriptions_.end()) {
      --subscribed->second.carried;
      renew_credit(subscribed->first, subscribed->second);
    }
    held_.erase(found);
  }
}

Completion<std::vector<Extended>> Guest::noting(const std::vector<LeaseRef>& leases,
                                                Completion<std::vector<Extended>> done) {
  std::vector<std::uint64_t> tokens;
  for (const LeaseRef& lease : leases) tokens.push_back(lease.token);
  return [this, tokens = std::move(tokens), done = std::move(done)](Result<std::vector<Extended>> result) {
    std::vector<std::uint64_t> over;
    for (std::size_t i = 0; result && i < std::min(tokens.size(), result->size()); ++i) {
      if ((*result)[i].lost) over.push_back(tokens[i]);
    }
    if (!over.empty()) release(over);
    done(std::move(result));
  };
}

Completion<std::vector<Status>> Guest::noting(const std::vector<Settlement>& settlements,
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
