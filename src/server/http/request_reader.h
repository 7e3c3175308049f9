// RequestReader: bytes in, requests out. It never touches a socket, and holds nothing between two requests but the bytes
// of the next one that came early. It keeps no view of what it is given: whatever it has not used is copied before a call
// returns.
//
//   for (step = reader.advance(bytes);; step = reader.advance()) {
//     case kMore:     give it more bytes
//     case kYield:     let others have their turn, and go on: a little that came stands for much
//     case kHead:     everything but the body; accept_body() or drop_body(), and go on
//     case kWhole:    take()
//     case kRefused:  problem(); the bytes after it mean nothing any more: answer and close
//   }

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/limits.h"
#include "server/http/memory_budget.h"
#include "server/http/request_head.h"
#include "wire/problem.h"

namespace bide::server {

class RequestReader {
 public:
  enum class Step : std::uint8_t { kMore, kYield, kHead, kWhole, kRefused };

  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Goes on to the next step, with what is waiting and these bytes. kMore: nothing is waiting but an unfinished head.
  Step advance(std::string_view bytes = {});
  // For bytes that came while there is another request to answer.
  void keep(std::string_view bytes);

  // After kHead, until take().
  Request& request() { return head_.request; }
  const RequestHead& head() const { return head_; }
  // "Expect: 100-continue", and nothing of the body is here yet.
  bool wants_continue() const;

  // The body counts up to `most` bytes after `gzip` was undone; one byte more is 413. It is charged before it grows; where
  // that cannot be it is 503. drop_body(): it is read and forgotten; more than `most` of it is 413 as well.
  void accept_body(std::uint64_t most, bool gzip, MemoryCharge charge = {});
  void drop_body(std::uint64_t most);
  std::uint64_t body_received() const;
  MemoryCharge& charge();  // Of the body; until take().

  Request take();  // After kWhole. The next advance() is about the next request.
  const wire::Problem& problem() const { return problem_; }

  // A request has begun, or bytes of one wait.
  bool is_busy() const { return body_ != nullptr || !rest_.empty(); }
  std::size_t waiting_bytes() const { return rest_.size() - used_; }

 private:
  class Body;

  // Both consume from the front of `bytes` what they use.
  Step begin(std::string_view& bytes);
  Step read_body(std::string_view& bytes);
  Step refuse(wire::Problem problem);

  const HttpLimits& limits_;
  std::string rest_;       // Of earlier calls, from `used_` on.
  std::size_t used_ = 0;
  std::size_t checked_ = 0;  // Bytes of a head whose end has not come.
  std::unique_ptr<Body> body_;  // From the head of a request until take().
  RequestHead head_;
  wire::Problem problem_;
  bool refused_ = false;
};

}  // namespace bide::server
