#include "brokers/database/lane.h"

#include <chrono>

#include "platform/fatal.h"

namespace bide::brokers::database {

using std::chrono::steady_clock;

void Lane::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void Lane::stop(Milliseconds at_most) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  if (!thread_.joinable()) return;
  platform::require(thread_.get_id() != std::this_thread::get_id(), "a broker is not closed by one of its own completions");
  if (!changed_.wait_for(lock, at_most, [this] { return ended_; })) {
    interrupted_ = true;
    if (session_) session_->interrupt();
  }
  std::thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
}

bool Lane::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

std::string Lane::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void Lane::run() {
  std::optional<Moment> next;
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    const auto due = [&] { return woken_ || stopping_; };
    if (next) {
      changed_.wait_until(lock, *next, due);
    } else {
      changed_.wait(lock, due);
    }
    woken_ = false;
    last = stopping_;
    lock.unlock();
    next = step_(*this);
    lock.lock();
  }
  lock.unlock();
  drop();
  lock.lock();
  ended_ = true;
  changed_.notify_all();
}

Status Lane::connect() {
  std::unique_lock lock(mutex_);
  if (session_) return {};
  const Error stopped{ErrorCode::kUnavailable, "the broker is closed" + (trouble_.empty() ? "" : "; " + trouble_)};
  if (interrupted_) return stopped;
  // Whoever asks in between waits for the next try, not longer.
  changed_.wait_until(lock, not_before_, [this] { return stopping_; });
  if (stopping_ && !trouble_.empty()) return stopped;
  lock.unlock();
  auto opened = store_.connect();
  lock.lock();
  if (!opened) {
    not_before_ = steady_clock::now() + backoff_.next();
    trouble_ = opened.error().message;
    return opened.error();
  }
  trouble_.clear();
  backoff_.reset();
  session_ = std::move(*opened);
  ++sessions_;
  if (interrupted_) session_->interrupt();
  return {};
}

void Lane::drop() {
  std::unique_ptr<Session> gone;
  const std::lock_guard lock(mutex_);
  gone = std::move(session_);
}

}  // namespace bide::brokers::database
