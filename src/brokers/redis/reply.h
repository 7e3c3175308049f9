// Reply: what a Redis server answers to one command.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bide::brokers::redis {

struct Reply {
  enum class Kind : std::uint8_t { kNil, kText, kInteger, kArray, kError };

  Kind kind = Kind::kNil;
  std::int64_t integer = 0;
  std::string text = {};  // Also of an error: its code, a space and a line for people.
  std::vector<Reply> items = {};

  bool is_nil() const { return kind == Kind::kNil; }
  bool is_error() const { return kind == Kind::kError; }
  bool is_array() const { return kind == Kind::kArray; }
  // "NOSCRIPT", "OOM" ...; empty when it is no error.
  std::string_view error_code() const {
    return is_error() ? std::string_view(text).substr(0, text.find(' ')) : std::string_view();
  }
  // A nil where the array is shorter.
  const Reply& at(std::size_t index) const {
    static const Reply nil;
    return index < items.size() ? items[index] : nil;
  }
};

}  // namespace bide::brokers::redis
