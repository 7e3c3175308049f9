// JobId: names one job, everywhere and for ever. A UUID; those that bide makes are of version 7, so they sort by time.

#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "bide/result.h"

namespace bide {

class JobId {
 public:
  static constexpr std::size_t kSize = 16;

  JobId() = default;  // Nil: "not given yet".
  explicit JobId(const std::array<std::uint8_t, kSize>& bytes) : bytes_(bytes) {}

  // Accepts the usual 36 characters, in either case. kInvalidArgument otherwise.
  static Result<JobId> parse(std::string_view text);
  std::string to_string() const;

  bool is_nil() const { return *this == JobId(); }
  const std::array<std::uint8_t, kSize>& bytes() const { return bytes_; }

  friend auto operator<=>(const JobId&, const JobId&) = default;
  // Said apart, because compilers make two instructions of it.
  friend bool operator==(const JobId& a, const JobId& b) {
    return std::memcmp(a.bytes_.data(), b.bytes_.data(), kSize) == 0;
  }

 private:
  std::array<std::uint8_t, kSize> bytes_{};
};

}  // namespace bide

template <>
struct std::hash<bide::JobId> {
  std::size_t operator()(const bide::JobId& id) const noexcept {
    // The last eight bytes of a UUID of version 7 are random.
    std::uint64_t low;
    std::memcpy(&low, id.bytes().data() + 8, sizeof low);
    return static_cast<std::size_t>(low);
  }
};
