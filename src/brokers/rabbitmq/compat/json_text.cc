#include "brokers/rabbitmq/compat/json_text.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/number_text.h"
#include "core/time_text.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr int kDeepest = 64;
constexpr std::string_view kHexDigits = "0123456789abcdef";

// The length of the UTF-8 character at the beginning; 0 when there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

struct Printer {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const { return std::isfinite(number) ? core::format_number(number) : "null"; }
  std::string operator()(const std::string& text) const { return json_string(text); }
  std::string operator()(const FieldList& list) const {
    std::string out = "[";
    for (const Field& field : list) out += (out.size() > 1 ? "," : "") + to_json(field);
    return out + "]";
  }
  std::string operator()(const FieldTable& table) const {
    std::string out = "{";
    for (const auto& [name, field] : table)
      out += (out.size() > 1 ? "," : "") + json_string(name) + ":" + to_json(field);
    return out + "}";
  }
};

// Walks through a JSON text. On the way it notes where the members of the outermost object are, or of the first object
// of the outermost array.
class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  bool document() {
    if (!value(0)) return false;
    space();
    return at_ == text_.size();
  }
  // Of the first object: names and values as they are written.
  const std::vector<std::pair<std::string_view, std::string_view>>& found() const { return found_; }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool digits() {
    const std::size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > start;
  }
  bool number() {
    take("-");
    if (!take("0") && !digits()) return false;
    if (take(".") && !digits()) return false;
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      return digits();
    }
    return true;
  }
  bool string() {
    if (!take("\"")) return false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<std::uint8_t>(c) < 0x20) return false;
      if (c != '\\') continue;
      if (take("u")) {
        for (int i = 0; i < 4; ++i, ++at_) {
          if (std::string_view("0123456789abcdefABCDEF").find(peek()) == std::string_view::npos) return false;
        }
      } else if (at_ == text_.size() || std::string_view("\"\\/bfnrt").find(text_[at_++]) == std::string_view::npos) {
        return false;
      }
    }
    return false;
  }
  bool members(char close, bool named, int depth) {
    ++at_;
    space();
    if (peek() == close) return ++at_, true;
    const bool looked_at = named && !seen_object_;
    if (looked_at) seen_object_ = true;
    while (true) {
      std::string_view name;
      if (named) {
        space();
        const std::size_t start = at_;
        if (!string()) return false;
        name = text_.substr(start + 1, at_ - start - 2);
        space();
        if (!take(":")) return false;
        space();
      }
      const std::size_t start = at_;
      if (!value(depth + 1)) return false;
      if (looked_at) found_.emplace_back(name, text_.substr(start, at_ - start));
      space();
      if (peek() == close) return ++at_, true;
      if (!take(",")) return false;
    }
  }
  bool value(int depth) {
    if (depth > kDeepest) return false;
    space();
    switch (peek()) {
      case '{':
        return members('}', true, depth);
      case '[':
        return members(']', false, depth);
      case '"':
        return string();
      default:
        return take("null") || take("true") || take("false") || number();
    }
  }

  std::string_view text_;
  std::vector<std::pair<std::string_view, std::string_view>> found_;
  bool seen_object_ = false;
  std::size_t at_ = 0;
};

void append_utf8(std::string& out, std::uint32_t point) {
  const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80 | (point >> shift & 0x3f))); };
  if (point < 0x80) return out.push_back(static_cast<char>(point));
  if (point < 0x800) return out.push_back(static_cast<char>(0xc0 | point >> 6)), tail(0);
  if (point < 0x10000) return out.push_back(static_cast<char>(0xe0 | point >> 12)), tail(6), tail(0);
  out.push_back(static_cast<char>(0xf0 | point >> 18)), tail(12), tail(6), tail(0);
}

// Of a string that is valid JSON, with its quotes.
std::string plain_text(std::string_view quoted) {
  const std::string_view inside = quoted.substr(1, quoted.size() - 2);
  const auto unit = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::from_chars(inside.data() + at, inside.data() + at + 4, value, 16);
    return value;
  };
  std::string out;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      out += inside[i];
      continue;
    }
    switch (inside[++i]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'u': {
        std::uint32_t point = unit(i + 1);
        i += 4;
        const bool high = point >= 0xd800 && point < 0xdc00;
        if (high && inside.substr(i + 1, 2) == "\\u" && unit(i + 3) >= 0xdc00 && unit(i + 3) < 0xe000) {
          point = 0x10000 + ((point - 0xd800) << 10) + (unit(i + 3) - 0xdc00);
          i += 6;
        } else if (point >= 0xd800 && point < 0xe000) {
          point = 0xfffd;
        }
        append_utf8(out, point);
        break;
      }
      default:
        out += inside[i];
    }
  }
  return out;
}

// As Ruby prints a Time.
std::string ruby_time(std::uint64_t seconds) {
  std::string text = core::format_time(Time(std::chrono::seconds(static_cast<std::int64_t>(seconds))));
  text.replace(text.find('T'), 1, " ");
  return text.substr(0, text.find('.')) + " UTC";
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text.substr(i));
    const char c = text[i];
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<std::uint8_t>(c) < 0x20) {
      out += "\\u00";
      out += kHexDigits[static_cast<std::uint8_t>(c) >> 4];
      out += kHexDigits[static_cast<std::uint8_t>(c) & 15];
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out + '"';
}

std::string to_json(const Field& field) { return std::visit(Printer{}, field.value); }

std::string properties_json(const AmqpMessage& message) {
  FieldTable properties;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) properties.emplace_back(name, text);
  };
  add("content_type", message.content_type);
  add("content_encoding", message.content_encoding);
  if (!message.headers.empty()) properties.emplace_back("headers", message.headers);
  properties.emplace_back("delivery_mode", message.persistent ? 2 : 1);
  if (message.priority) properties.emplace_back("priority", static_cast<int>(*message.priority));
  add("correlation_id", message.correlation_id);
  add("reply_to", message.reply_to);
  add("expiration", message.expiration);
  add("message_id", message.message_id);
  if (message.timestamp) properties.emplace_back("timestamp", ruby_time(*message.timestamp));
  add("type", message.type);
  add("app_id", message.app_id);
  return to_json(Field(std::move(properties)));
}

bool is_json(std::string_view text) { return Checker(text).document(); }

std::optional<std::string> json_member(std::string_view text, std::string_view name) {
  Checker checker(text);
  if (!checker.document()) return std::nullopt;
  std::optional<std::string> found;
  for (const auto& [member, value] : checker.found()) {
    if (member == name) found = value.front() == '"' ? plain_text(value) : std::string(value);
  }
  return found;
}

FieldTable json_scalars(std::string_view text) {
  Checker checker(text);
  FieldTable fields;
  if (!checker.document()) return fields;
  for (const auto& [name, value] : checker.found()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.front() == '"') {
      fields.emplace_back(name, plain_text(value));
    } else if (value == "true" || value == "false") {
      fields.emplace_back(name, value == "true");
    } else if (error == std::errc() && end == value.data() + value.size()) {
      fields.emplace_back(name, number);
    }
  }
  return fields;
}

namespace {

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<std::uint8_t>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) out += i + j <= bytes.size() ? kBase64Digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string out;
  std::uint32_t group = 0;
  int digits = 0;
  bool over = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      over = true;
      continue;
    }
    const std::size_t value = kBase64Digits.find(c);
    if (over || value == std::string_view::npos) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (++digits < 4) continue;
    for (int shift = 16; shift >= 0; shift -= 8) out.push_back(static_cast<char>(group >> shift & 0xff));
    group = 0;
    digits = 0;
  }
  if (digits == 1) return std::nullopt;
  if (digits >= 2) out.push_back(static_cast<char>(group >> (digits == 2 ? 4 : 10) & 0xff));
  if (digits == 3) out.push_back(static_cast<char>(group >> 2 & 0xff));
  return out;
}

}  // namespace bide::brokers::rabbitmq::compat
