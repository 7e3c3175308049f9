// Exchange: one request's way back. A route answers it from any thread; the connection takes the answer on its own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/http/memory_budget.h"
#include "server/http/response.h"

namespace bide::server {

class Exchange : public ReplyTarget, public std::enable_shared_from_this<Exchange> {
 public:
  // `wake` is called, on whatever thread, when there is something to take and the connection said that it waits.
  // `request` is what the body of the request takes: it is free when there is an answer, not before, whether or not the
  // client is still there. `answer` counts what is held for the client; where there is no room for an answer it is 503, or
  // 504 for a request that may have changed something.
  Exchange(std::function<void()> wake, std::size_t stream_limit, MemoryCharge request = {}, MemoryCharge answer = {},
           bool may_change = true);

  // For the route.
  void send(Response response) override;
  std::shared_ptr<Stream> stream(Response head) override;
  void on_gone(std::function<void()> gone) override;
  // After on_gone() that is what a route should do: then the answer is kClientGone.
  void give_up() override;
  bool reserve(std::uint64_t bytes) override;

  // For the connection.
  struct Answer {
    Response response;
    bool is_stream = false;
    MemoryCharge charge = {};
  };
  // Nothing: it is not there yet, and `wake` will be called.
  std::optional<Answer> take_answer();
  struct Part {
    std::string bytes = {};
    bool ended = false;       // By the route: the last there will be.
    bool overflowed = false;  // The client did not read, and the stream was given up.
    MemoryCharge charge = {};
  };
  // Of a stream, what was written since. With neither bytes nor end: `wake` will be called.
  Part take_part();
  // Nobody will have the answer, or the rest of it.
  void client_is_gone();
  // And the connection is closed: it is never woken again, nor kept.
  void detach();

 private:
  class ReplyStream;
  bool write(std::string bytes);
  void end();
  void tell(std::unique_lock<std::mutex> lock);

  const std::size_t stream_limit_;
  const bool may_change_;

  std::mutex mutex_;  // Guards everything below.
  std::function<void()> wake_;
  std::function<void()> gone_;
  std::optional<Answer> answer_;
  std::string waiting_;  // Of the stream.
  MemoryCharge request_;
  MemoryCharge held_;  // Of the answer, or of what is waiting.
  bool connection_waits_ = false;
  bool is_gone_ = false;
  bool answered_ = false;
  bool ended_ = false;
  bool overflowed_ = false;
};

}  // namespace bide::server
