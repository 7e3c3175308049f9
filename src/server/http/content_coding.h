// gzip, both ways. Undoing it is bounded: a few bytes that stand for a great many are stopped at the limit.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bide::server {

class Gunzip {
 public:
  enum class Result : std::uint8_t { kOk, kTooLarge, kBroken };

  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Appends what `bytes` stand for. kTooLarge: `out` would have more than `most` bytes.
  Result push(std::string_view bytes, std::string& out, std::uint64_t most);
  // The bytes so far are whole.
  bool is_complete() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Quickly rather than well: it is done between two other requests.
std::string gzip(std::string_view bytes);

// By Accept-Encoding.
bool accepts_gzip(std::string_view accept_encoding);
// Worth it for what this type says.
bool is_compressible(std::string_view content_type);

}  // namespace bide::server
