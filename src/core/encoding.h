// Encoder and Decoder: the primitive fields of what goes to disk or through a socket. Integers are little-endian;
// counts and lengths are unsigned LEB128 of at most ten bytes; a string is its length and its bytes.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "bide/job_id.h"

namespace bide::core {

template <class T>
void store_little_endian(char* into, T value) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(into, &value, sizeof value);
  } else {
    for (std::size_t i = 0; i < sizeof(T); ++i) into[i] = static_cast<char>(value >> (8 * i));
  }
}

template <class T>
T load_little_endian(const char* from) {
  T value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, from, sizeof value);
  } else {
    for (std::size_t i = sizeof(T); i-- > 0;) {
      value = static_cast<T>(value << 8) | static_cast<T>(static_cast<std::uint8_t>(from[i]));
    }
  }
  return value;
}

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void u32(std::uint32_t value) { fixed(value); }
  void u64(std::uint64_t value) { fixed(value); }
  void i64(std::int64_t value) { fixed(static_cast<std::uint64_t>(value)); }
  void f64(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    fixed(bits);
  }
  void count(std::uint64_t value) {
    if (value < 0x80) return u8(static_cast<std::uint8_t>(value));
    char bytes[10];
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7) bytes[size++] = static_cast<char>(value | 0x80);
    bytes[size++] = static_cast<char>(value);
    out_.append(bytes, size);
  }
  void string(std::string_view value) {
    count(value.size());
    out_.append(value);
  }
  void raw(std::string_view value) { out_.append(value); }  // Without its length.
  // An id and a few bytes behind it, as every record begins.
  template <class... Bytes>
  void id_and_bytes(const JobId& value, Bytes... behind) {
    char bytes[JobId::kSize + sizeof...(Bytes)];
    std::memcpy(bytes, value.bytes().data(), JobId::kSize);
    std::size_t at = JobId::kSize;
    ((bytes[at++] = static_cast<char>(behind)), ...);
    out_.append(bytes, sizeof bytes);
  }
  void id(const JobId& value) { out_.append(reinterpret_cast<const char*>(value.bytes().data()), JobId::kSize); }

 private:
  template <class T>
  void fixed(T value) {
    char bytes[sizeof(T)];
    store_little_endian(bytes, value);
    out_.append(bytes, sizeof(T));
  }

  std::string& out_;
};

// Reading past the end gives zeros and makes ok() false: check once, at the end.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  void fail() { ok_ = false; }  // What was read makes no sense.
  bool done() const { return ok_ && at_ == bytes_.size(); }
  std::size_t left() const { return bytes_.size() - at_; }

  std::uint8_t u8() { return fixed<std::uint8_t>(); }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }
  std::int64_t i64() { return static_cast<std::int64_t>(fixed<std::uint64_t>()); }
  double f64() {
    const std::uint64_t bits = u64();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  std::uint64_t count() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift == 63 && byte > 1) break;  // More than 64 bits.
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    ok_ = false;
    return 0;
  }
  std::string_view string() {
    const std::uint64_t size = count();
    if (!ok_ || size > bytes_.size() - at_) {
      ok_ = false;
      return {};
    }
    const std::string_view value = bytes_.substr(at_, size);
    at_ += size;
    return value;
  }
  std::string_view raw(std::size_t size) {
    if (size > left()) {
      ok_ = false;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::string_view rest() {
    const std::string_view value = bytes_.substr(at_);
    at_ = bytes_.size();
    return value;
  }
  JobId id() {
    std::array<std::uint8_t, JobId::kSize> value{};
    if (take(JobId::kSize)) std::memcpy(value.data(), bytes_.data() + at_ - JobId::kSize, JobId::kSize);
    return JobId(value);
  }

 private:
  bool take(std::size_t size) {
    if (!ok_ || size > bytes_.size() - at_) return ok_ = false;
    at_ += size;
    return true;
  }
  template <class T>
  T fixed() {
    if (!take(sizeof(T))) return 0;
    return load_little_endian<T>(bytes_.data() + at_ - sizeof(T));
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace bide::core
