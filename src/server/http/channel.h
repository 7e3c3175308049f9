// Channel: the bytes of one connection, plain or through TLS. Nothing here waits: what cannot go on now says what it
// waits for, and the session waits for that.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace bide::server {

struct Transfer {
  enum class State : std::uint8_t { kDone, kWantsRead, kWantsWrite, kEnded, kFailed };
  State state = State::kDone;
  std::size_t bytes = 0;
  bool may_be_more = false;  // Read: ask again before waiting.
};

class Channel {
 public:
  virtual ~Channel() = default;

  // kDone: both sides agree to talk.
  virtual Transfer handshake() = 0;
  virtual Transfer read(char* into, std::size_t size) = 0;
  // With `more` the bytes need not be sent before those of the next write.
  virtual Transfer write(std::string_view bytes, bool more) = 0;
  // Bytes are here that no socket will announce any more.
  virtual bool has_buffered() const = 0;
  // Says that nothing more will be written.
  virtual void end() = 0;
};

// Of a connected socket that does not block and stays the caller's.
std::unique_ptr<Channel> plain_channel(int socket);

}  // namespace bide::server
