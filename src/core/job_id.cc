#include "bide/job_id.h"

#include "core/quote.h"
#include "core/text.h"

namespace bide {
namespace {

constexpr std::size_t kTextSize = 36;

constexpr bool is_dash_place(std::size_t index) { return index == 8 || index == 13 || index == 18 || index == 23; }

Error not_an_id(std::string_view text, const std::string& why) {
  return {ErrorCode::kInvalidArgument, "invalid job id " + core::quoted(text) + ": " + why +
                                           "; give a UUID such as 0193e2a4-5b6c-7d8e-9f01-23456789abcd"};
}

}  // namespace

Result<JobId> JobId::parse(std::string_view text) {
  if (text.size() != kTextSize) {
    return not_an_id(text, "it has " + std::to_string(text.size()) + " characters, not 36");
  }
  std::array<std::uint8_t, kSize> bytes{};
  std::size_t digits = 0;
  for (std::size_t index = 0; index < kTextSize; ++index) {
    if (is_dash_place(index)) {
      if (text[index] != '-') return not_an_id(text, "character " + std::to_string(index + 1) + " must be a dash");
      continue;
    }
    const int value = core::hex_value(text[index]);
    if (value < 0) {
      return not_an_id(text, "character " + std::to_string(index + 1) + " must be a hexadecimal digit");
    }
    bytes[digits / 2] = static_cast<std::uint8_t>(bytes[digits / 2] << 4 | value);
    ++digits;
  }
  return JobId(bytes);
}

std::string JobId::to_string() const {
  std::string text;
  text.reserve(kTextSize);
  for (const std::uint8_t byte : bytes_) {
    if (is_dash_place(text.size())) text += '-';
    core::append_hex(text, byte);
  }
  return text;
}

}  // namespace bide
