#include "server/http/channel.h"

#include <sys/socket.h>

#include <cerrno>

namespace bide::server {

namespace {

class PlainChannel : public Channel {
 public:
  explicit PlainChannel(int socket) : socket_(socket) {}

  Transfer handshake() override { return {}; }

  Transfer read(char* into, std::size_t size) override {
    const ssize_t got = ::recv(socket_, into, size, 0);
    const auto bytes = static_cast<std::size_t>(got > 0 ? got : 0);
    if (got > 0) return {.bytes = bytes, .may_be_more = bytes == size};
    if (got == 0) return {.state = Transfer::State::kEnded};
    return {.state = would_block() ? Transfer::State::kWantsRead : Transfer::State::kFailed};
  }

  Transfer write(std::string_view bytes, bool more) override {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
    return {.state = would_block() ? Transfer::State::kWantsWrite : Transfer::State::kFailed};
  }

  bool has_buffered() const override { return false; }
  void end() override { ::shutdown(socket_, SHUT_WR); }

 private:
  static bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

  const int socket_;
};

}  // namespace

std::unique_ptr<Channel> plain_channel(int socket) { return std::make_unique<PlainChannel>(socket); }

}  // namespace bide::server
