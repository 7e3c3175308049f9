// Limits: how much one client may ask of the HTTP side. Nothing that a client sends makes us hold more than these say.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bide::server {

struct HttpLimits {
  std::size_t head_bytes = 16 * 1024;   // The request line and all fields.
  std::size_t fields = 100;
  std::size_t target_bytes = 8 * 1024;  // Path and query.
  std::uint64_t body_bytes = 64 * 1024 * 1024;  // After its content coding was undone.
  // All bodies and answers that are held at a time, of all connections, divided as in memory_budget.h. When that is used up,
  // first of all those are ended that neither sent nor read anything for `stalled_after`, or were slower than `prompt_rate`
  // (bytes a second) for so long.
  std::uint64_t held_bytes = 512 * 1024 * 1024;
  std::chrono::milliseconds stalled_after{1'000};
  std::size_t prompt_rate = 256 * 1024;
  std::size_t stream_bytes = 256 * 1024;  // Of a stream, what its client has not read yet.
  std::size_t connections = 10'000;  // When so many are open, one that waits for its client makes room for the next.

  std::chrono::milliseconds idle_timeout{75'000};  // Between two requests.
  std::chrono::milliseconds head_timeout{10'000};  // From its first byte; for a TLS handshake as well.
  // For a body and for an answer: so long, and a second more for each `slowest_rate` bytes that went through.
  std::chrono::milliseconds transfer_timeout{30'000};
  std::size_t slowest_rate = 16 * 1024;
};

}  // namespace bide::server
