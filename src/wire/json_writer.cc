#include "wire/json_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/text.h"
#include "core/time_text.h"
#include "core/utf8.h"

namespace bide::wire {

namespace {

using core::kHexDigits;

// Bytes that go into a string as they are.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x7f; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

// Whether all eight bytes go into a string as they are.
bool is_plain(std::uint64_t bytes) {
  constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;
  constexpr std::uint64_t kHighs = 0x80 * kOnes;
  const auto has_zero = [](std::uint64_t word) { return (word - kOnes) & ~word & kHighs; };
  const auto has = [&](unsigned char c) { return has_zero(bytes ^ (c * kOnes)); };
  const std::uint64_t control = (bytes - 0x20 * kOnes) & ~bytes & kHighs;
  return ((bytes & kHighs) | control | has('"') | has('\\') | has(0x7f)) == 0;
}

void append_escaped(std::string& out, char c) {
  if (const char letter = c == '"' ? '"' : core::escape_letter(static_cast<unsigned char>(c))) {
    out += '\\';
    out += letter;
    return;
  }
  out += "\\u00";
  core::append_hex(out, static_cast<unsigned char>(c));
}

}  // namespace

JsonWriter& JsonWriter::name(std::string_view name) {
  comma();
  out_ += '"';
  out_ += name;
  out_ += "\":";
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::any_name(std::string_view name) {
  string(name).out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  comma();
  out_ += json;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  comma();
  comma_ = true;
  out_ += '"';
  std::size_t from = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t word = 0;
    while (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if (!is_plain(word)) break;
      at += sizeof word;
    }
    if (at == text.size()) break;
    if (kPlain[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const std::size_t bytes = core::character_bytes(text.substr(at));
    // U+0080 to U+009F: terminals obey these controls too. Their code is the second byte.
    const bool high_control = bytes == 2 && text[at] == '\xc2' && static_cast<unsigned char>(text[at + 1]) < 0xa0;
    if (bytes > 1 && !high_control) {
      at += bytes;
      continue;
    }
    out_ += text.substr(from, at - from);
    if (bytes == 0) {
      out_ += "\xef\xbf\xbd";
    } else {
      append_escaped(out_, text[at + bytes - 1]);
    }
    from = at += std::max<std::size_t>(bytes, 1);
  }
  out_ += text.substr(from);
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  char buffer[64];
  // 0.0001, not 1e-04, which is as right and harder to read.
  const bool fixed = value == 0 || (std::fabs(value) >= 1e-6 && std::fabs(value) < 1e15);
  const auto last = fixed ? std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed)
                          : std::to_chars(buffer, buffer + sizeof buffer, value);
  return raw(std::string_view(buffer, static_cast<std::size_t>(last.ptr - buffer)));
}

JsonWriter& JsonWriter::value(const JobId& id) {
  char text[38];
  std::size_t at = 0;
  text[at++] = '"';
  for (std::size_t i = 0; i < JobId::kSize; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    text[at++] = kHexDigits[id.bytes()[i] >> 4];
    text[at++] = kHexDigits[id.bytes()[i] & 15];
  }
  text[at++] = '"';
  return raw(std::string_view(text, at));
}

JsonWriter& JsonWriter::value(Time time) {
  const std::int64_t ms = time.time_since_epoch().count();
  constexpr std::int64_t kYear9999 = 253'370'764'800'000;
  if (ms < 0 || ms >= kYear9999) return string(core::format_time(time));
  // The jobs of an answer are due close together: most share their second with the one before.
  thread_local std::int64_t last_second = -1;
  thread_local std::string text;
  if (ms / 1000 != last_second) {
    text = '"' + core::format_time(time) + '"';
    last_second = ms / 1000;
  }
  const auto fraction = static_cast<std::size_t>(ms % 1000);
  const std::size_t at = text.size() - 5;  // Three digits, Z, quote.
  text[at] = kHexDigits[fraction / 100];
  text[at + 1] = kHexDigits[fraction / 10 % 10];
  text[at + 2] = kHexDigits[fraction % 10];
  return raw(text);
}

JsonWriter& JsonWriter::bytes(std::string_view key, std::string_view value) {
  if (core::is_utf8(value)) return field(key, value);
  return name(std::string(key) + "_base64").string(core::to_base64(value));
}

}  // namespace bide::wire
