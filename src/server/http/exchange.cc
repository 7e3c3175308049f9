#include "server/http/exchange.h"

#include <chrono>
#include <string>
#include <utility>

#include "wire/problem.h"

namespace bide::server {

class Exchange::ReplyStream : public Stream {
 public:
  explicit ReplyStream(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~ReplyStream() override { exchange_->end(); }
  ReplyStream(const ReplyStream&) = delete;
  ReplyStream& operator=(const ReplyStream&) = delete;

  bool write(std::string bytes) override { return exchange_->write(std::move(bytes)); }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

Exchange::Exchange(std::function<void()> wake, std::size_t stream_limit, MemoryCharge request, MemoryCharge answer,
                   bool may_change)
    : stream_limit_(stream_limit), may_change_(may_change), wake_(std::move(wake)), request_(std::move(request)), held_(std::move(answer)) {}

namespace {

wire::Problem no_room(bool may_change) {
  const std::string detail = "there is no room for the answer beside those that others do not read";
  if (may_change) return {.status = 504, .code = "unconfirmed", .detail = detail + "; the request was carried out"};
  return {.status = 503, .code = "unavailable", .detail = detail, .retry_after = std::chrono::milliseconds(1'000)};
}

}  // namespace

// Called without the lock: it goes into the event loop, which may run anything.
void Exchange::tell(std::unique_lock<std::mutex> lock) {
  if (!std::exchange(connection_waits_, false)) return;
  const std::function<void()> wake = wake_;
  lock.unlock();
  if (wake) wake();
}

void Exchange::send(Response response) {
  std::function<void()> gone;
  Response unsent;  // Its receipt is given up without the lock.
  std::unique_lock lock(mutex_);
  if (std::exchange(answered_, true)) return;
  request_.set(0);
  if (!held_.set(response.body.capacity())) {
    held_.set(0);
    const bool was_refused = response.status >= 400 && response.status < 500;
    unsent = std::exchange(response, to_response(no_room(may_change_ && !was_refused)));
  }
  answer_.emplace(Answer{.response = std::move(response), .charge = held_.split()});
  gone.swap(gone_);
  tell(std::move(lock));
}

std::shared_ptr<Stream> Exchange::stream(Response head) {
  auto stream = std::make_shared<ReplyStream>(shared_from_this());
  std::unique_lock lock(mutex_);
  if (!std::exchange(answered_, true)) {
    request_.set(0);
    held_.set(0);
    answer_.emplace(Answer{.response = std::move(head), .is_stream = true});
    tell(std::move(lock));
  }
  return stream;
}

void Exchange::on_gone(std::function<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_gone_) {
      gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

void Exchange::give_up() {
  bool is_gone = false;
  {
    const std::lock_guard lock(mutex_);
    is_gone = is_gone_;
  }
  if (is_gone) return send({.status = kClientGone});
  ReplyTarget::give_up();
}

bool Exchange::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return answered_ || held_.set(bytes);
}

bool Exchange::write(std::string bytes) {
  std::unique_lock lock(mutex_);
  if (is_gone_ || overflowed_) return false;
  const std::size_t size = waiting_.size() + bytes.size();
  if (size > stream_limit_ || !held_.set(size)) {
    overflowed_ = true;
    std::string().swap(waiting_);
    held_.set(0);
    tell(std::move(lock));
    return false;
  }
  waiting_ += bytes;
  tell(std::move(lock));
  return true;
}

void Exchange::end() {
  std::unique_lock lock(mutex_);
  ended_ = true;
  tell(std::move(lock));
}

std::optional<Exchange::Answer> Exchange::take_answer() {
  const std::lock_guard lock(mutex_);
  connection_waits_ = !answer_;
  return std::exchange(answer_, std::nullopt);
}

Exchange::Part Exchange::take_part() {
  const std::lock_guard lock(mutex_);
  Part part{.bytes = std::exchange(waiting_, {}), .ended = ended_, .overflowed = overflowed_, .charge = held_.split()};
  connection_waits_ = part.bytes.empty() && !part.ended && !part.overflowed;
  return part;
}

void Exchange::client_is_gone() {
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    is_gone_ = true;
    gone.swap(gone_);
    std::string().swap(waiting_);
    if (answered_) held_.set(0);
  }
  if (gone) gone();
}

void Exchange::detach() {
  client_is_gone();
  std::function<void()> wake;
  const std::lock_guard lock(mutex_);
  wake.swap(wake_);
  connection_waits_ = false;
}

}  // namespace bide::server
