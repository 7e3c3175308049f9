// gzip, both ways. It is undone in small pieces: a few bytes that stand for a great many go no further than whoever takes
// the pieces lets them.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace bide::server {

class Gunzip {
 public:
  enum class Result : std::uint8_t { kOk, kStopped, kBroken };

  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Gives what `bytes` stand for to `take`, a piece at a time. kStopped: `take` said no.
  Result push(std::string_view bytes, const std::function<bool(std::string_view)>& take);
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
