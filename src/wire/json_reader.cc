#include "wire/json_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/text.h"
#include "core/utf8.h"

namespace bide::wire {

namespace {

using core::hex_value;
using core::is_digit;

// Whether all of eight bytes are plain within a string: printable ASCII, no quote, no backslash. The usual trick: a
// byte that is zero after the xor borrows from its high bit.
bool all_plain(const char* bytes) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHigh = 0x8080808080808080;
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  const std::uint64_t quote = word ^ (kOnes * '"');
  const std::uint64_t backslash = word ^ (kOnes * '\\');
  const std::uint64_t special = (word - kOnes * 0x20) | (quote - kOnes) | (backslash - kOnes) | word;
  return (special & kHigh) == 0;
}

// Four digits; -1 when they are not.
int hex_code(std::string_view text) {
  if (text.size() < 4) return -1;
  int code = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const int value = hex_value(text[i]);
    if (value < 0) return -1;
    code = code * 16 + value;
  }
  return code;
}

bool is_leading(int code) { return code >= 0xd800 && code < 0xdc00; }
bool is_trailing(int code) { return code >= 0xdc00 && code < 0xe000; }

}  // namespace

void JsonReader::fail(std::string_view code, std::string text) {
  if (!ok()) return;
  fault_ = {code, at_, std::move(text)};
}

bool JsonReader::fail_syntax(std::string_view text) {
  fail("invalid_json", std::string(text) + (at_ >= text_.size() ? ", but the text ends" : ""));
  return false;
}

void JsonReader::go_back(Place place) {
  at_ = place.at;
  depth_ = place.depth;
  first_ = place.first;
  fault_ = {};
}

void JsonReader::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++at_;
  }
}

JsonReader::Type JsonReader::type() {
  if (!ok()) return Type::kNothing;
  skip_space();
  if (at_ >= text_.size()) return Type::kNothing;
  switch (text_[at_]) {
    case '{':
      return Type::kObject;
    case '[':
      return Type::kArray;
    case '"':
      return Type::kString;
    case 't':
    case 'f':
      return Type::kBoolean;
    case 'n':
      return Type::kNull;
    default:
      return text_[at_] == '-' || is_digit(text_[at_]) ? Type::kNumber : Type::kNothing;
  }
}

bool JsonReader::expect(Type wanted, std::string_view what) {
  const Type found = type();
  if (found == wanted) return true;
  if (found == Type::kNothing) return fail_syntax("expected a value");
  static constexpr std::string_view kNames[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};
  fail(wanted == Type::kObject ? "expected_object" : "wrong_type",
       "expected " + std::string(what) + ", found " + std::string(kNames[static_cast<std::size_t>(found)]));
  return false;
}

bool JsonReader::enter() {
  if (++depth_ > deepest_) {
    fail("json_too_deep", "more than " + std::to_string(deepest_) + " levels deep");
    return false;
  }
  ++at_;
  first_ = true;
  return true;
}

bool JsonReader::object() { return expect(Type::kObject, "an object") && enter(); }
bool JsonReader::array() { return expect(Type::kArray, "an array") && enter(); }

std::optional<std::string_view> JsonReader::field() {
  if (!ok()) return std::nullopt;
  skip_space();
  if (at_ < text_.size() && text_[at_] == '}') {
    ++at_;
    --depth_;
    first_ = false;
    return std::nullopt;
  }
  if (!std::exchange(first_, false)) {
    if (at_ >= text_.size() || text_[at_] != ',') return fail_syntax("expected a comma or '}'"), std::nullopt;
    ++at_;
    skip_space();
  }
  if (at_ >= text_.size() || text_[at_] != '"') return fail_syntax("expected a name in quotes"), std::nullopt;
  std::string_view name;
  if (!read_string(name)) return std::nullopt;
  skip_space();
  if (at_ >= text_.size() || text_[at_] != ':') return fail_syntax("expected a colon"), std::nullopt;
  ++at_;
  return name;
}

bool JsonReader::element() {
  if (!ok()) return false;
  skip_space();
  if (at_ < text_.size() && text_[at_] == ']') {
    ++at_;
    --depth_;
    first_ = false;
    return false;
  }
  if (std::exchange(first_, false)) return true;
  if (at_ >= text_.size() || text_[at_] != ',') return fail_syntax("expected a comma or ']'");
  ++at_;
  return true;
}

std::string_view JsonReader::string() {
  std::string_view text;
  if (expect(Type::kString, "a string")) read_string(text);
  return text;
}

std::string_view JsonReader::number() {
  if (!expect(Type::kNumber, "a number")) return {};
  const std::size_t from = at_;
  return skip_number() ? text_.substr(from, at_ - from) : std::string_view();
}

bool JsonReader::boolean() {
  if (!expect(Type::kBoolean, "true or false")) return false;
  const bool value = text_[at_] == 't';
  return skip_word(value ? "true" : "false") && value;
}

void JsonReader::null() {
  if (expect(Type::kNull, "null")) skip_word("null");
}

std::string_view JsonReader::raw() {
  if (!ok()) return {};
  skip_space();
  const std::size_t from = at_;
  return skip_value() ? text_.substr(from, at_ - from) : std::string_view();
}

void JsonReader::end() {
  if (!ok()) return;
  skip_space();
  if (at_ != text_.size()) fail_syntax("nothing may follow the value");
}

bool JsonReader::skip_value() {
  switch (type()) {
    case Type::kObject:
      if (!enter()) return false;
      while (true) {
        skip_space();
        if (at_ < text_.size() && text_[at_] == '}') break;
        if (!std::exchange(first_, false)) {
          if (at_ >= text_.size() || text_[at_] != ',') return fail_syntax("expected a comma or '}'");
          ++at_;
          skip_space();
        }
        if (at_ >= text_.size() || text_[at_] != '"') return fail_syntax("expected a name in quotes");
        if (!skip_string()) return false;
        skip_space();
        if (at_ >= text_.size() || text_[at_] != ':') return fail_syntax("expected a colon");
        ++at_;
        if (!skip_value()) return false;
      }
      ++at_;
      --depth_;
      first_ = false;
      return true;
    case Type::kArray:
      if (!enter()) return false;
      while (element()) {
        if (!skip_value()) return false;
      }
      return ok();
    case Type::kString:
      return skip_string();
    case Type::kNumber:
      return skip_number();
    case Type::kBoolean:
      return skip_word(text_[at_] == 't' ? "true" : "false");
    case Type::kNull:
      return skip_word("null");
    case Type::kNothing:
      break;
  }
  return ok() && fail_syntax("expected a value");
}

bool JsonReader::skip_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return fail_syntax("expected a value");
  at_ += word.size();
  return true;
}

bool JsonReader::skip_number() {
  const auto digits = [this] {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ != from;
  };
  if (text_[at_] == '-') ++at_;
  if (at_ < text_.size() && text_[at_] == '0') {
    ++at_;
  } else if (!digits()) {
    return fail_syntax("expected a digit");
  }
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    if (!digits()) return fail_syntax("expected a digit");
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (!digits()) return fail_syntax("expected a digit");
  }
  return true;
}

// At a quote; afterwards behind the other one.
bool JsonReader::skip_string() {
  ++at_;
  while (true) {
    while (at_ + 8 <= text_.size() && all_plain(text_.data() + at_)) at_ += 8;
    if (at_ >= text_.size()) return fail_syntax("a string is not closed");
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c == '\\') {
      if (!skip_escape()) return false;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      return fail_syntax("a control character in a string must be escaped");
    } else {
      const std::size_t bytes = core::character_bytes(text_.substr(at_));
      if (bytes == 0) return fail_syntax("a string is not valid UTF-8");
      at_ += bytes;
    }
  }
}

bool JsonReader::skip_escape() {
  if (at_ + 1 >= text_.size()) return at_ = text_.size(), fail_syntax("a string is not closed");
  const char c = text_[at_ + 1];
  if (c != 'u') {
    if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) return fail_syntax("unknown escape");
    at_ += 2;
    return true;
  }
  const int code = hex_code(text_.substr(at_ + 2));
  if (code < 0) return fail_syntax("\\u needs four hexadecimal digits");
  if (is_trailing(code)) return fail_syntax("half of a surrogate pair");
  if (is_leading(code)) {
    const bool pair =
        text_.substr(at_ + 6, 2) == "\\u" && is_trailing(hex_code(text_.substr(std::min(at_ + 8, text_.size()))));
    if (!pair) return fail_syntax("half of a surrogate pair");
    at_ += 6;
  }
  at_ += 6;
  return true;
}

bool JsonReader::read_string(std::string_view& out) {
  const std::size_t from = at_ + 1;
  if (!skip_string()) return false;
  const std::string_view inside = text_.substr(from, at_ - 1 - from);
  if (inside.find('\\') == std::string_view::npos) {
    out = inside;
    return true;
  }
  unescaped_.clear();
  unescape(inside, unescaped_);
  out = unescaped_;
  return true;
}

// What skip_string() has found to be right.
void JsonReader::unescape(std::string_view inside, std::string& out) {
  while (!inside.empty()) {
    const std::size_t plain = std::min(inside.find('\\'), inside.size());
    out += inside.substr(0, plain);
    inside.remove_prefix(plain);
    if (inside.empty()) return;
    const char c = inside[1];
    if (c != 'u') {
      static constexpr std::string_view kLetters = "bfnrt";
      const std::size_t letter = kLetters.find(c);
      out += letter == std::string_view::npos ? c : "\b\f\n\r\t"[letter];
      inside.remove_prefix(2);
      continue;
    }
    auto code = static_cast<std::uint32_t>(hex_code(inside.substr(2)));
    inside.remove_prefix(6);
    if (is_leading(static_cast<int>(code))) {
      code = 0x10000 + ((code - 0xd800) << 10) + (static_cast<std::uint32_t>(hex_code(inside.substr(2))) - 0xdc00);
      inside.remove_prefix(6);
    }
    core::append_character(out, code);
  }
}

bool is_json_value(std::string_view text, int deepest) {
  if (text.empty()) return false;
  JsonReader reader(text, deepest);
  return reader.raw().size() == text.size();
}

}  // namespace bide::wire
