// RequestReader: bytes in, requests out. It never touches a socket, and holds nothing between two requests but the bytes
// of the next one that came early.
//
//   reader.feed(bytes);
//   switch (reader.advance()) {
//     case kMore:     feed it more
//     case kHead:     everything but the body; accept_body() or drop_body(), and go on
//     case kWhole:    take()
//     case kRefused:  problem(); the bytes after it mean nothing any more: answer and close
//   }

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/limits.h"
#include "server/http/request.h"
#include "wire/problem.h"

namespace bide::server {

class RequestReader {
 public:
  enum class Step : std::uint8_t { kMore, kHead, kWhole, kRefused };

  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // The view need stay valid only until the next advance() has returned kMore, kWhole or kRefused.
  void feed(std::string_view bytes);
  // The same for bytes that came while there is another request to answer: they are copied.
  void keep(std::string_view bytes) { rest_.append(bytes); }
  Step advance();

  // After kHead, until take().
  Request& request() { return request_; }
  bool is_http_1_0() const { return is_http_1_0_; }
  bool keep_alive() const { return keep_alive_; }
  bool has_body() const { return has_body_; }
  std::optional<std::uint64_t> content_length() const { return content_length_; }
  // "Expect: 100-continue", and nothing of the body is here yet.
  bool wants_continue() const;

  // The body counts up to `most` bytes after `gzip` was undone; one byte more is 413. drop_body(): it is read and
  // forgotten; more than `most` of it is 413 as well.
  void accept_body(std::uint64_t most, bool gzip);
  void drop_body(std::uint64_t most);
  std::uint64_t body_received() const;

  Request take();  // After kWhole. The next advance() is about the next request.
  const wire::Problem& problem() const { return problem_; }

  // A request has begun, or bytes of one wait.
  bool is_busy() const { return body_ != nullptr || !rest_.empty() || !fed_.empty(); }
  std::size_t waiting_bytes() const { return rest_.size() + fed_.size(); }

 private:
  class HeadParser;
  class Body;

  std::string_view waiting() const { return rest_.empty() ? fed_ : std::string_view(rest_); }
  void consume(std::size_t bytes);
  void keep_rest();
  Step begin();
  Step read_body();
  Step refuse(wire::Problem problem);

  const HttpLimits& limits_;
  std::string_view fed_;  // Looked at first where it lies.
  std::string rest_;      // What is left of it, when more is needed.
  std::size_t seen_ = 0;  // Of a head whose end has not come.
  std::unique_ptr<Body> body_;  // From the head of a request until take().
  Request request_;
  wire::Problem problem_;
  std::optional<std::uint64_t> content_length_;
  bool is_http_1_0_ = false;
  bool keep_alive_ = false;
  bool has_body_ = false;
  bool refused_ = false;
};

}  // namespace bide::server
