// Response: what a route answers. Reply: the one way to give it, once, from any thread, now or later.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wire/problem.h"

namespace bide::server {

// Never on the wire: the client went away before it had its answer. Counted and logged under this status, as by other
// servers.
inline constexpr int kClientGone = 499;

// Told what became of an answer: every byte was given to the connection, or the client can certainly not have had it whole.
// Whoever drops an answer says the second by it. On any thread; must not block.
class Receipt {
 public:
  Receipt(std::function<void()> written, std::function<void()> lost)
      : written_(std::move(written)), lost_(std::move(lost)) {}
  ~Receipt() {
    if (lost_) lost_();
  }
  Receipt(const Receipt&) = delete;
  Receipt& operator=(const Receipt&) = delete;

  void written() {
    lost_ = nullptr;
    if (const auto tell = std::exchange(written_, nullptr)) tell();
  }

 private:
  std::function<void()> written_;
  std::function<void()> lost_;
};

struct Response {
  int status = 200;
  std::string content_type = {};  // Empty: there is no body.
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> fields = {};
  std::shared_ptr<Receipt> receipt = {};  // Null: nobody asks.
};

// With Retry-After where the problem says when; 401 with WWW-Authenticate.
Response to_response(const wire::Problem& problem);

// An answer without an end: server-sent events.
class Stream {
 public:
  virtual ~Stream() = default;  // Ends the answer.
  // False when the client has gone, or reads so slowly that too much is waiting: then give it up.
  virtual bool write(std::string bytes) = 0;
};

// Where the answer goes: implemented by the connection, and by tests.
class ReplyTarget {
 public:
  virtual ~ReplyTarget() = default;
  virtual void send(Response response) = 0;
  virtual std::shared_ptr<Stream> stream(Response head) = 0;
  // Called at most once, on any thread, when the client goes away before it has its answer.
  virtual void on_gone(std::function<void()> gone) = 0;
  // The reply was destroyed without an answer: 500.
  virtual void give_up();
  // See Reply::reserve().
  virtual bool reserve(std::uint64_t) { return true; }
};

// Destroyed without an answer, it answers 500: no client waits for ever.
class Reply {
 public:
  explicit Reply(std::shared_ptr<ReplyTarget> target) : target_(std::move(target)) {}
  Reply(Reply&&) noexcept = default;
  Reply& operator=(Reply&&) noexcept = default;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply();

  void send(Response response);
  std::shared_ptr<Stream> stream(Response head);
  void on_gone(std::function<void()> gone);
  // Counts the memory of an answer with so many bytes before it is made; call it, once the size is known, for whatever can be
  // larger than some KiB. False: too much is waiting to be read by others; then send a 503 with Retry-After instead, and do
  // not build it. send() counts by itself what was not reserved; without room the client has 503 for a GET, and 504
  // (unconfirmed) for what may have changed something.
  //
  //   if (!reply.reserve(page_bytes)) return refuse(reply, wire::make_problem("unavailable", "..."));
  bool reserve(std::uint64_t bytes) { return !target_ || target_->reserve(bytes); }

 private:
  std::shared_ptr<ReplyTarget> target_;  // Null once answered.
};

}  // namespace bide::server
