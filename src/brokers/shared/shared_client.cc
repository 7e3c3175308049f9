#include "brokers/shared/shared_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "platform/clock.h"
#include "platform/fatal.h"

namespace bide::brokers::shared {

namespace {

constexpr std::int64_t kGoodbyeAtMostMs = 5'000;
constexpr Milliseconds kFirstWait{5};
constexpr Milliseconds kLongestWait{200};
constexpr Milliseconds kTick{100};
constexpr Milliseconds kSilenceTick{1'000};
// How long a call waits for an owner that does not say a word, because it was stopped without being ended. What people
// ask for may take its time; the end of a subscription waits only out of courtesy.
std::optional<std::int64_t> longest_silence_ms(FrameType type) {
  if (type == FrameType::kUnsubscribe) return 1'000;
  if (type == FrameType::kEnqueue || type == FrameType::kExtend || type == FrameType::kSettle ||
      type == FrameType::kSaveBody || type == FrameType::kSaveStep) {
    return 10'000;
  }
  return std::nullopt;
}

// The answer of a call that has nothing to say but yes.
constexpr std::string_view kOkAnswer("\x01", 1);

Error closed() { return {ErrorCode::kUnavailable, "the store is closed"}; }

}  // namespace

std::shared_ptr<SharedClient> SharedClient::start(OwnerConnection connected, FindOwner find_owner,
                                                  Milliseconds patience) {
  std::shared_ptr<SharedClient> client(new SharedClient(std::move(connected), std::move(find_owner), patience));
  client->thread_ = std::thread([raw = client.get()] { raw->run(); });
  return client;
}

SharedClient::SharedClient(OwnerConnection connected, FindOwner find_owner, Milliseconds patience)
    : find_owner_(std::move(find_owner)),
      patience_(patience),
      socket_(std::move(connected.socket)),
      incoming_(std::move(connected.incoming)),
      capabilities_(std::move(connected.capabilities)) {}

SharedClient::~SharedClient() { platform::require(!thread_.joinable(), "a client is closed before its end"); }

void SharedClient::close() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  waker_.wake();
  if (thread_.joinable()) thread_.join();
  std::map<std::uint64_t, Subscribed> ended;  // Destroyed without the lock: the local owner may have to be waited for.
  std::lock_guard lock(mutex_);
  state_ = State::kClosed;
  ended.swap(subscriptions_);
}

void SharedClient::abort_connection() {
  {
    std::lock_guard lock(mutex_);
    vanishing_ = true;
  }
  close();
}

// ---- Calls, from any thread.

void SharedClient::submit(FrameType type, std::uint64_t number, std::string frame, Handler handler) {
  Call call{.type = type,
            .frame = std::make_shared<const std::string>(std::move(frame)),
            .handler = std::move(handler),
            .since_ms = platform::now_ms()};
  std::unique_lock lock(mutex_);
  if (state_ == State::kClosed || closing_) {
    lock.unlock();
    call.handler(closed());
    return;
  }
  if (state_ == State::kOwner) {
    const LocalOwner local_owner = local_owner_;
    if (type == FrameType::kWatch) watches_.emplace(number, nullptr);
    lock.unlock();
    execute_at(local_owner, number, call);
    return;
  }
  unanswered_bytes_ += call.frame->size();
  if (state_ == State::kConnected) {
    unsent_.emplace_back(number, call.frame);
    wake();
  }
  calls_.emplace(number, std::move(call));
}

void SharedClient::execute_at(const LocalOwner& local_owner, std::uint64_t number, const Call& call) {
  // The subscription itself has been handed on already.
  if (call.type == FrameType::kSubscribe || call.type == FrameType::kUnsubscribe) return call.handler(kOkAnswer);
  const Reply reply = [handler = call.handler](const Answer& answer) {
    std::string bytes;
    Encoder out(bytes);
    answer(out);
    handler(std::string_view(bytes));
  };
  if (call.type != FrameType::kWatch) {
    const bool understood =
        execute(call.type, payload_of(*call.frame), *local_owner.broker, *local_owner.inspector, reply);
    platform::require(understood, "a client understands its own calls");
    return;
  }
  {
    std::lock_guard lock(mutex_);
    if (!watches_.contains(number)) return;  // Given up.
  }
  const Reply ended = [weak = weak_from_this(), number, reply](const Answer& answer) {
    if (const auto self = weak.lock()) {
      std::lock_guard lock(self->mutex_);
      self->watches_.erase(number);
    }
    reply(answer);
  };
  GiveUp give_up;
  const bool understood = execute_watch(payload_of(*call.frame), *local_owner.inspector, ended, give_up);
  platform::require(understood, "a client understands its own calls");
  std::unique_lock lock(mutex_);
  if (const auto found = watches_.find(number); found != watches_.end()) {
    found->second = std::move(give_up);
    return;
  }
  // Given up meanwhile, or answered already, and then it does no harm.
  lock.unlock();
  give_up();
}

void SharedClient::give_up_watch(std::uint64_t number) {
  GiveUp give_up;
  Call call;  // Destroyed without the lock: what it holds may call us.
  std::lock_guard lock(mutex_);
  if (const auto found = calls_.find(number); found != calls_.end()) {
    call = std::move(found->second);
    calls_.erase(found);
    unanswered_bytes_ -= call.frame->size();
    if (state_ == State::kConnected) send_one_way(make_frame(FrameType::kUnwatch, number));
  } else if (const auto handed = watches_.find(number); handed != watches_.end()) {
    give_up = std::move(handed->second);
    watches_.erase(handed);
  }
  if (give_up) give_up();  // Never blocks.
}

void SharedClient::send_one_way(std::string frame) {
  unsent_.emplace_back(0, std::make_shared<const std::string>(std::move(frame)));
  wake();
}

void SharedClient::wake() {
  if (!polling_) return;
  polling_ = false;
  waker_.wake();
}

// ---- The client's thread.

void SharedClient::run() {
  if (!take_frames()) on_owner_lost();
  while (true) {
    State state;
    {
      std::lock_guard lock(mutex_);
      if (vanishing_) state_ = State::kClosed;
      state = state_;
    }
    if (state == State::kConnected) {
      exchange_frames();
    } else if (state == State::kReconnecting) {
      reconnect();
    } else {
      break;
    }
  }
  close_socket();
  wait_for_held();
  end_calls();
}

void SharedClient::close_socket() { const platform::LocalSocket gone = std::move(socket_); }

// One round of sending and receiving.
void SharedClient::exchange_frames() {
  bool closing = false;
  bool waiting = false;
  std::optional<Milliseconds> pause;
  {
    std::lock_guard lock(mutex_);
    const std::int64_t now = platform::now_ms();
    expire_held(now);
    for (auto& [number, frame] : unsent_) {
      if (const auto call = calls_.find(number); call != calls_.end()) call->second.sent = true;
      if (!send_closed_) outgoing_.add(std::move(frame));
    }
    unsent_.clear();
    polling_ = true;
    closing = closing_;
    waiting = !calls_.empty();
    if (closing && closing_since_ms_ == 0) {
      closing_since_ms_ = now;
      if (!send_closed_) outgoing_.add(make_frame(FrameType::kGoodbye, 0));
    }
    if (held_check_ms_ != kNever) pause = Milliseconds(held_check_ms_ - now);
    if (waiting) pause = std::min(pause.value_or(kSilenceTick), kSilenceTick);
    if (closing) pause = std::min(pause.value_or(kTick), kTick);
  }
  if (!outgoing_.empty() && outgoing_.send_to(socket_) == SendQueue::Sent::kClosed) {
    // Not the end yet: its last answers may still be there to read.
    send_closed_ = true;
    outgoing_.clear();
  }
  platform::Readiness waited[] = {{waker_.descriptor(), true, false}, {socket_.descriptor(), true, !outgoing_.empty()}};
  platform::wait_ready(waited, pause);
  if (waited[0].read) waker_.clear();
  {
    std::lock_guard lock(mutex_);
    polling_ = false;
  }
  // An owner that takes what we send is alive too.
  if (waited[1].read || waited[1].write) received_ms_ = platform::now_ms();
  if (waiting && !waited[1].read) expire_unanswered();
  const bool late = closing && platform::now_ms() - closing_since_ms_ > kGoodbyeAtMostMs;
  if (late || (waited[1].read && !receive())) on_owner_lost();
}

// False: the owner is gone, or not to be understood.
bool SharedClient::receive() {
  const platform::Transfer transfer = socket_.receive(incoming_.room(kReadBytes), kReadBytes);
  if (transfer.closed) return false;
  incoming_.filled(transfer.bytes);
  return take_frames();
}

bool SharedClient::take_frames() {
  Frame frame;
  FrameReader::Next next = FrameReader::Next::kMore;
  while ((next = incoming_.next(frame)) == FrameReader::Next::kFrame) {
    if (!take_frame(frame)) return false;
  }
  return next == FrameReader::Next::kMore;
}

bool SharedClient::take_frame(const Frame& frame) {
  Decoder in(frame.payload);
  if (frame.type == FrameType::kAnswer) {
    Call call;
    {
      std::lock_guard lock(mutex_);
      const auto found = calls_.find(frame.number);
      if (found == calls_.end()) return true;  // Nobody waits for it.
      call = std::move(found->second);
      calls_.erase(found);
      unanswered_bytes_ -= call.frame->size();
    }
    call.handler(frame.payload);
    return true;
  }
  if (frame.type == FrameType::kLeases) {
    const auto granted_ms = static_cast<std::int64_t>(take<std::uint64_t>(in));
    auto leases = take<std::vector<Lease>>(in);
    if (!in.done()) return false;
    take_leases(frame.number, granted_ms, std::move(leases));
    return true;
  }
  if (frame.type == FrameType::kPressure) {
    auto pressure = take<Pressure>(in);
    if (!in.done()) return false;
    std::lock_guard lock(mutex_);
    pressure_ = std::move(pressure);
    return true;
  }
  goodbye_ = frame.type == FrameType::kGoodbye;
  return false;
}

void SharedClient::take_leases(std::uint64_t number, std::int64_t granted_ms, std::vector<Lease> leases) {
  std::shared_ptr<const LeaseSink> sink;
  {
    std::lock_guard lock(mutex_);
    const auto found = subscriptions_.find(number);
    if (found != subscriptions_.end()) {
      // This process or the owner stood still while they were under way: they have run out, others may have them.
      const Milliseconds age(platform::now_ms() - granted_ms + 1);  // Rather older than younger than the owner thinks.
      const SubscribeOptions& options = found->second.options;
      if (age >= options.lease) {
        found->second.passed_over += leases.size();
        if (found->second.delivery_limit) renew_credit(number, found->second);
        return;
      }
      found->second.arrived += leases.size();
      sink = found->second.sink;
      const std::int64_t lease_ms = options.lease.count();
      for (Lease& lease : leases) {
        lease.age = age;
        Held& held = held_[lease.token];
        held = {lease.job.id, number, options.outlives_process, lease_ms, 0, false, false};
        renew(held, granted_ms);
      }
    }
  }
  if (sink != nullptr) return (*sink)(std::move(leases));
  // Its subscriber left while they were under way.
  std::vector<Settlement> back;
  for (const Lease& lease : leases) back.push_back({.lease = {lease.job.id, lease.token}, .outcome = Returned{}});
  settle(std::move(back), [](const Result<std::vector<Status>>&) {});
}

void SharedClient::on_owner_lost() {
  std::vector<Call> failed;
  {
    std::lock_guard lock(mutex_);
    state_ = closing_ ? State::kClosed : State::kReconnecting;
    unsent_.clear();
    const std::int64_t now = platform::now_ms();
    expire_held(now);
    for (auto at = calls_.begin(); at != calls_.end();) {
      Call& call = at->second;
      const bool unharmed = !call.sent || goodbye_ || is_repeatable(call.type) || call.type == FrameType::kSubscribe;
      call.unconfirmed = call.unconfirmed || (call.sent && !goodbye_);
      if (unharmed && call.type != FrameType::kUnsubscribe) {
        call.sent = false;
        call.since_ms = now;
        ++at;
      } else {
        unanswered_bytes_ -= call.frame->size();
        failed.push_back(std::move(call));
        at = calls_.erase(at);
      }
    }
    for (auto& [token, held] : held_) {
      const auto subscribed = subscriptions_.find(held.subscription);
      if (!held.carried && subscribed != subscriptions_.end()) ++subscribed->second.carried;
      held.carried = true;
    }
    check_carried();
  }
  close_socket();
  outgoing_.clear();
  incoming_ = {};
  send_closed_ = goodbye_ = false;
  for (const Call& call : failed) {
    fail(call, std::string("the process that owned the data directory ended before it confirmed") +
                   (call.type == FrameType::kEnqueue ? "; the jobs may exist" : ""));
  }
}

void SharedClient::reconnect() {
  for (Milliseconds pause = kFirstWait;; pause = std::min(pause * 2, kLongestWait)) {
    {
      std::lock_guard lock(mutex_);
      if (closing_) {
        state_ = State::kClosed;
        return;
      }
    }
    auto found = find_owner_();
    if (found) {
      if (auto* connected = std::get_if<OwnerConnection>(&*found)) return join(std::move(*connected));
      return become_owner(std::get<LocalOwner>(*found));
    }
    expire_calls(found.error().message);
    platform::Readiness waited{waker_.descriptor(), true, false};
    platform::wait_ready({&waited, 1}, pause);
    waker_.clear();
  }
}

// With a local owner there is nothing left to do, but to see the leases of earlier owners end.
void SharedClient::wait_for_held() {
  while (true) {
    std::optional<Milliseconds> pause;
    {
      std::lock_guard lock(mutex_);
      if (state_ != State::kOwner || closing_) return;
      const std::int64_t now = platform::now_ms();
      expire_held(now);
      if (held_.empty()) return;
      pause = Milliseconds(held_check_ms_ - now);
    }
    platform::Readiness waited{waker_.descriptor(), true, false};
    platform::wait_ready({&waited, 1}, pause);
    waker_.clear();
  }
}

void SharedClient::join(OwnerConnection connected) {
  socket_ = std::move(connected.socket);
  incoming_ = std::move(connected.incoming);
  std::unique_lock lock(mutex_);
  capabilities_ = std::move(connected.capabilities);
  pressure_ = {};
  state_ = State::kConnected;
  std::vector<LeaseRef> ours;
  std::vector<LeaseRef> delivered;
  for (auto& [token, held] : held_) {
    renew(held, platform::now_ms());  // Each new owner gives them all of their time again.
    if (!held.outlives_process) ours.push_back({held.id, token});
    if (held.outlives_process && held.delivered) delivered.push_back({held.id, token});
  }
  if (!ours.empty()) send_one_way(make_frame(FrameType::kHeldLeases, 0, [&](Encoder& out) { put(out, ours); }));
  if (!delivered.empty())
    send_one_way(make_frame(FrameType::kMarkDelivered, 0, [&](Encoder& out) { put(out, delivered); }));
  for (auto& [number, subscribed] : subscriptions_) {
    if (!subscribed.established || subscribed.ended) continue;
    SubscribeOptions options = subscribed.options;
    options.credit = subscribed.rest();
    subscribed.before_owner = subscribed.arrived;
    subscribed.passed_over = 0;
    const std::uint64_t call = ++last_number_;
    send_one_way(
        make_frame(FrameType::kSubscribe, call, [&, name = number](Encoder& out) { put(out, name, options); }));
    if (subscribed.delivery_limit) renew_credit(number, subscribed);
  }
  for (auto& [number, call] : calls_) unsent_.emplace_back(number, call.frame);
  for (auto& [number, subscribed] : subscriptions_) {
    if (!subscribed.established && !subscribed.ended) renew_credit(number, subscribed);
  }
  lock.unlock();
  if (!take_frames()) on_owner_lost();
}

void SharedClient::become_owner(LocalOwner local_owner) {
  std::map<std::uint64_t, Call> calls;
  std::map<std::uint64_t, Error> refused;
  std::vector<LeaseRef> ours;
  {
    std::lock_guard lock(mutex_);
    local_owner_ = local_owner;
    state_ = State::kOwner;
    for (auto& [token, held] : held_) {
      renew(held, platform::now_ms());
      if (!held.outlives_process || held.delivered) ours.push_back({held.id, token});
    }
    for (auto& [number, subscribed] : subscriptions_) {
      if (subscribed.ended) continue;
      SubscribeOptions options = subscribed.options;
      options.credit = subscribed.rest();
      auto inner = local_owner.broker->subscribe(std::move(options), *subscribed.sink);
      if (inner) {
        subscribed.inner = std::move(*inner);
        subscribed.before_owner = subscribed.arrived;
        subscribed.passed_over = 0;
        if (subscribed.delivery_limit) renew_credit(number, subscribed);
      } else {
        refused.emplace(number, inner.error());
      }
    }
    calls.swap(calls_);
    unanswered_bytes_ = 0;
    for (const auto& [number, call] : calls) {
      if (call.type == FrameType::kWatch) watches_.emplace(number, nullptr);
    }
  }
  if (!ours.empty()) local_owner.broker->mark_delivered(std::move(ours));
  for (const auto& [number, call] : calls) {
    const auto error = refused.find(number);  // A subscription has the number of its call.
    if (error != refused.end()) {
      call.handler(error->second);
    } else {
      execute_at(local_owner, number, call);
    }
  }
}

void SharedClient::expire_calls(const std::string& why) {
  std::vector<Call> expired;
  {
    std::lock_guard lock(mutex_);
    const std::int64_t before = platform::now_ms() - patience_.count();
    for (auto at = calls_.begin(); at != calls_.end();) {
      if (at->second.since_ms > before) {
        ++at;
        continue;
      }
      unanswered_bytes_ -= at->second.frame->size();
      expired.push_back(std::move(at->second));
      at = calls_.erase(at);
    }
  }
  for (const Call& call : expired) fail(call, "the owner of the data directory is gone: " + why);
}

void SharedClient::expire_unanswered() {
  const std::int64_t now = platform::now_ms();
  std::vector<Call> expired;
  {
    std::lock_guard lock(mutex_);
    for (auto at = calls_.begin(); at != calls_.end();) {
      const auto longest = longest_silence_ms(at->second.type);
      if (!longest || now - std::max(received_ms_, at->second.since_ms) < *longest) {
        ++at;
        continue;
      }
      unanswered_bytes_ -= at->second.frame->size();
      expired.push_back(std::move(at->second));
      at = calls_.erase(at);
    }
  }
  for (const Call& call : expired) fail(call, "not confirmed: the owner of the data directory does not answer");
}

void SharedClient::end_calls() {
  std::map<std::uint64_t, Call> calls;
  {
    std::lock_guard lock(mutex_);
    calls.swap(calls_);
    unanswered_bytes_ = 0;
    for (const auto& [number, call] : calls) {
      if (call.type == FrameType::kWatch) watches_.emplace(number, nullptr);
    }
  }
  for (const auto& [number, call] : calls) fail(call, closed().message);
}

void SharedClient::fail(const Call& call, std::string why) {
  const bool may_be_done = (call.sent || call.unconfirmed) && !is_read_only(call.type);
  call.handler(Error{may_be_done ? ErrorCode::kUnconfirmed : ErrorCode::kUnavailable, std::move(why)});
}

}  // namespace bide::brokers::shared
