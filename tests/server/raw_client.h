// RawClient: a socket to a server, and nothing in between: whatever bytes a test wants to send are sent. Every wait has
// an end, and a test that reaches it fails.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "platform/descriptor.h"

struct ssl_st;

namespace bide::server_tests {

struct RawAnswer {
  int status = 0;  // 0: the connection was closed without one.
  std::string head = {};
  std::map<std::string, std::string> fields = {};  // Names in lower case.
  std::string body = {};                           // Without its chunks.
};

class RawClient {
 public:
  // On loopback; throws when nobody listens.
  explicit RawClient(std::uint16_t port);
  explicit RawClient(const std::string& unix_path);
  explicit RawClient(platform::Descriptor connected) : socket_(std::move(connected)) {}
  // Speaks TLS, and trusts whatever it is shown.
  static RawClient with_tls(std::uint16_t port);

  // How long each wait may take, instead of 20 seconds.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

  // As much as the server takes; false when it has closed the connection.
  bool send(std::string_view bytes);
  // Says that nothing more will be sent.
  void end();
  void close() { const platform::Descriptor ended = std::move(socket_); }
  // Resets the connection.
  void slam();
  // From now on the kernel takes in little more for us.
  void shrink_receive_buffer();

  RawAnswer receive();
  // For HEAD: what follows is not a body.
  RawAnswer receive_head();
  // Until `text` has come; throws when it does not.
  std::string receive_until(std::string_view text);
  // Everything up to the end of the connection.
  std::string receive_rest();
  // Within the patience of a test.
  bool is_closed_by_server();

  RawAnswer ask(std::string_view request);

 private:
  bool fill();  // False: the end.
  bool wait(short events) const;

  platform::Descriptor socket_;
  std::shared_ptr<ssl_st> ssl_;  // Null: plain.
  std::chrono::milliseconds patience_{20'000};
  std::string received_;
};

// "GET /path" and what every request needs.
std::string get(std::string_view path, std::string_view fields = {});
std::string post(std::string_view path, std::string_view body, std::string_view fields = {});

}  // namespace bide::server_tests
