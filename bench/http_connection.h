// HttpConnection: one connection to a server on loopback, by bare system calls: what any client could do at best. Also
// used many at a time, without waiting.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bide/result.h"

namespace bide::bench {

struct HttpReply {
  int status = 0;
  std::string body = {};
};

class HttpConnection {
 public:
  static Result<HttpConnection> open(std::uint16_t port);
  HttpConnection(HttpConnection&& other) noexcept;
  HttpConnection& operator=(HttpConnection&& other) noexcept;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  // Sends and waits.
  Result<HttpReply> ask(std::string_view method, std::string_view path, std::string_view body);
  Status send(std::string_view method, std::string_view path, std::string_view body);
  Result<HttpReply> receive();

  // Takes what has arrived; the reply when it is whole.
  Result<std::optional<HttpReply>> receive_some();

  int descriptor() const { return descriptor_; }

 private:
  explicit HttpConnection(int descriptor) : descriptor_(descriptor) {}
  std::optional<HttpReply> take_reply();
  Status read_more(int flags);

  int descriptor_;
  std::string received_;
};

Result<std::uint16_t> free_loopback_port();

// Microseconds from a byte sent to one received, where another thread does nothing but send back what comes: the middle
// of so many. The messages have the size of a request and of its answer.
Result<double> loopback_round_trip_us(int count);

}  // namespace bide::bench
