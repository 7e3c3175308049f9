// Bytes: reads the fields of docs/formats/journal.md from a row of bytes. After the first field that does not fit,
// ok() is false and every field is zero.

#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "bide/job_id.h"

namespace bide::engine::check {

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && left_.empty(); }
  std::size_t left() const { return left_.size(); }

  std::uint8_t u8() { return static_cast<std::uint8_t>(little(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(little(4)); }
  std::uint64_t u64() { return little(8); }

  std::uint64_t count() {
    std::uint64_t value = 0;
    for (int place = 0; place < 10; ++place) {
      const std::uint64_t byte = u8();
      const std::uint64_t digits = byte & 127;
      if (place == 9 && digits > 1) break;
      value += digits << (7 * place);
      if (byte < 128) return ok_ ? value : 0;
    }
    ok_ = false;
    return 0;
  }

  std::string_view string() { return take(count()); }
  std::string_view rest() { return take(left_.size()); }
  void skip(std::uint64_t bytes) { take(bytes); }

  JobId id() {
    std::array<std::uint8_t, JobId::kSize> bytes{};
    const std::string_view taken = take(bytes.size());
    if (ok_) std::memcpy(bytes.data(), taken.data(), bytes.size());
    return JobId(bytes);
  }

 private:
  std::string_view take(std::uint64_t bytes) {
    if (!ok_ || bytes > left_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  std::uint64_t little(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = taken.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(taken[i - 1]);
    return value;
  }

  std::string_view left_;
  bool ok_ = true;
};

}  // namespace bide::engine::check
