// ServerVersion: "3.10.8" as numbers.

#pragma once

#include <charconv>
#include <compare>
#include <string_view>

namespace bide::brokers::rabbitmq {

struct ServerVersion {
  int major_number = 0;
  int minor_number = 0;

  // Zeros where there is no number.
  static ServerVersion parse(std::string_view text) {
    ServerVersion version;
    const char* const end = text.data() + text.size();
    const auto [dot, error] = std::from_chars(text.data(), end, version.major_number);
    if (error == std::errc() && dot != end && *dot == '.') std::from_chars(dot + 1, end, version.minor_number);
    return version;
  }

  friend auto operator<=>(const ServerVersion&, const ServerVersion&) = default;
};

}  // namespace bide::brokers::rabbitmq
