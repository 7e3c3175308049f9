#include "brokers/rabbitmq/compat/edn.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "bide/job_id.h"
#include "brokers/rabbitmq/compat/nippy.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/time_text.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr int kDeepest = 64;
constexpr std::string_view kHexDigits = "0123456789abcdef";

// In a text: the letter behind a backslash, and what it stands for.
constexpr std::string_view kEscapes = "ntrbf\"\\";
constexpr std::string_view kEscaped = "\n\t\r\b\f\"\\";

struct NamedCharacter {
  std::string_view name;
  std::uint16_t unit;
};
constexpr std::array kNamedCharacters = {NamedCharacter{"newline", '\n'},  NamedCharacter{"return", '\r'},
                                         NamedCharacter{"space", ' '},     NamedCharacter{"tab", '\t'},
                                         NamedCharacter{"formfeed", '\f'}, NamedCharacter{"backspace", '\b'}};

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    hex += kHexDigits[byte >> 4];
    hex += kHexDigits[byte & 15];
  }
  return hex;
}

std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    std::uint8_t byte = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (error != std::errc() || end != hex.data() + i + 2) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

void append_utf8(std::string& out, std::uint32_t point) {
  if (point < 0x80) {
    out.push_back(static_cast<char>(point));
  } else if (point < 0x800) {
    out.push_back(static_cast<char>(0xc0 | point >> 6));
    out.push_back(static_cast<char>(0x80 | (point & 0x3f)));
  } else {
    out.push_back(static_cast<char>(0xe0 | point >> 12));
    out.push_back(static_cast<char>(0x80 | (point >> 6 & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (point & 0x3f)));
  }
}

struct Printer {
  std::string& out;

  void quoted_text(std::string_view text) const {
    out += '"';
    for (const char c : text) {
      const std::size_t escape = kEscaped.find(c);
      if (escape == std::string_view::npos || c == '\b' || c == '\f') {
        out += c;
      } else {
        out += {'\\', kEscapes[escape]};
      }
    }
    out += '"';
  }
  void items(std::string_view open, const std::vector<ClojureValue>& values, char close) const {
    out += open;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ' ';
      std::visit(*this, values[i].value);
    }
    out += close;
  }

  void operator()(std::monostate) const { out += "nil"; }
  void operator()(bool flag) const { out += flag ? "true" : "false"; }
  void operator()(std::int64_t number) const { out += std::to_string(number); }
  void operator()(double number) const {
    if (std::isnan(number)) return void(out += "##NaN");
    if (std::isinf(number)) return void(out += number > 0 ? "##Inf" : "##-Inf");
    const std::string text = core::format_number(number);
    out += text;
    if (text.find_first_of(".e") == std::string::npos) out += ".0";
  }
  void operator()(const std::string& text) const { quoted_text(text); }
  void operator()(const ClojureKeyword& keyword) const { out += ':' + keyword.name; }
  void operator()(const ClojureSymbol& symbol) const { out += symbol.name; }
  void operator()(const ClojureCharacter& character) const {
    out += '\\';
    for (const NamedCharacter& named : kNamedCharacters) {
      if (named.unit == character.unit) return void(out += named.name);
    }
    if (character.unit > 0x20 && character.unit < 0x7f) return void(out += static_cast<char>(character.unit));
    out += 'u';
    for (int shift = 12; shift >= 0; shift -= 4) out += kHexDigits[character.unit >> shift & 15];
  }
  void operator()(const ClojureBytes& bytes) const { out += "#bide/bytes \"" + to_hex(bytes.bytes) + '"'; }
  void operator()(const ClojureUuid& uuid) const { out += "#uuid \"" + JobId(uuid.bytes).to_string() + '"'; }
  void operator()(const ClojureInstant& instant) const {
    out += "#inst \"" + core::format_time(Time(Milliseconds(instant.ms))) + '"';
  }
  void operator()(const ClojureVector& vector) const { items("[", vector.items, ']'); }
  void operator()(const ClojureList& list) const { items("(", list.items, ')'); }
  void operator()(const ClojureSet& set) const { items("#{", set.items, '}'); }
  void operator()(const ClojureMap& map) const {
    out += '{';
    for (std::size_t i = 0; i < map.entries.size(); ++i) {
      if (i > 0) out += ", ";
      std::visit(*this, map.entries[i].first.value);
      out += ' ';
      std::visit(*this, map.entries[i].second.value);
    }
    out += '}';
  }
  void operator()(const ClojureOpaque& opaque) const { out += "#bide/nippy \"" + to_hex(opaque.nippy) + '"'; }
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<ClojureValue> document() {
    Result<ClojureValue> value = next(0);
    if (!value) return value;
    if (Status skipped = skip(0); !skipped) return skipped.error();
    if (at_ < text_.size()) return wrong("something follows the value");
    return value;
  }

 private:
  Error wrong(const std::string& why) const {
    return {ErrorCode::kInvalidArgument, "invalid EDN at byte " + std::to_string(at_) + ": " + why};
  }

  static bool is_space(char c) { return c == ' ' || c == ',' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }
  static bool is_end(char c) {
    return is_space(c) || c == '(' || c == ')' || c == '[' || c == ']' || c == '{' || c == '}' || c == '"' || c == ';';
  }

  // Spaces, commas, comments and what is discarded.
  Status skip(int depth) {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_[at_] == ';') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (text_.substr(at_, 2) == "#_") {
        if (depth > kDeepest) return wrong("nested too deeply");
        at_ += 2;
        if (const Result<ClojureValue> discarded = next(depth + 1); !discarded) return discarded.error();
      } else {
        return {};
      }
    }
    return {};
  }

  std::string_view token() {
    const std::size_t start = at_;
    while (at_ < text_.size() && !is_end(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  Result<std::vector<ClojureValue>> items(char close, int depth) {
    std::vector<ClojureValue> values;
    while (true) {
      if (Status skipped = skip(depth); !skipped) return skipped.error();
      if (at_ == text_.size()) return wrong(std::string("the end, where ") + close + " is missing");
      if (text_[at_] == close) {
        ++at_;
        return values;
      }
      Result<ClojureValue> value = next(depth + 1);
      if (!value) return value.error();
      values.push_back(std::move(*value));
    }
  }

  // With its opening bracket.
  template <class Collection>
  Result<ClojureValue> collection(char close, int depth) {
    ++at_;
    Result<std::vector<ClojureValue>> values = items(close, depth);
    if (!values) return values.error();
    return ClojureValue{Collection{std::move(*values)}};
  }

  Result<ClojureValue> next(int depth) {
    if (depth > kDeepest) return wrong("nested too deeply");
    if (Status skipped = skip(depth); !skipped) return skipped.error();
    if (at_ == text_.size()) return wrong("the end, where a value is wanted");
    switch (text_[at_]) {
      case '"': {
        Result<std::string> text = string();
        if (!text) return text.error();
        return ClojureValue{std::move(*text)};
      }
      case '\\':
        return character();
      case '#':
        return dispatch(depth);
      case '{': {
        ++at_;
        Result<std::vector<ClojureValue>> values = items('}', depth);
        if (!values) return values.error();
        if (values->size() % 2 != 0) return wrong("a map with a key that has no value");
        ClojureMap map;
        for (std::size_t i = 0; i < values->size(); i += 2) {
          map.entries.emplace_back(std::move((*values)[i]), std::move((*values)[i + 1]));
        }
        return ClojureValue{std::move(map)};
      }
      case '[':
        return collection<ClojureVector>(']', depth);
      case '(':
        return collection<ClojureList>(')', depth);
      case ')':
      case ']':
      case '}':
        return wrong("a bracket that was not opened");
      default:
        return atom();
    }
  }

  Result<std::string> string() {
    std::string text;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return text;
      }
      if (c != '\\') {
        text += c;
        continue;
      }
      if (++at_ == text_.size()) break;
      if (const std::size_t escape = kEscapes.find(text_[at_]); escape != std::string_view::npos) {
        text += kEscaped[escape];
      } else if (text_[at_] == 'u') {
        const std::optional<std::uint16_t> unit = hex_unit(text_.substr(at_ + 1, 4));
        if (!unit || (*unit >= 0xd800 && *unit < 0xe000)) return wrong("\\u without four digits of a character");
        append_utf8(text, *unit);
        at_ += 4;
      } else {
        return wrong("an unknown escape in a text");
      }
    }
    return wrong("a text without its end");
  }

  static std::optional<std::uint16_t> hex_unit(std::string_view digits) {
    std::uint16_t unit = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4) return std::nullopt;
    return unit;
  }

  Result<ClojureValue> character() {
    ++at_;
    if (at_ == text_.size()) return wrong("the end, where a character is wanted");
    const std::size_t start = at_++;
    while (at_ < text_.size() && !is_end(text_[at_])) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.size() == 1) return ClojureValue{ClojureCharacter{static_cast<std::uint8_t>(name[0])}};
    for (const NamedCharacter& named : kNamedCharacters) {
      if (named.name == name) return ClojureValue{ClojureCharacter{named.unit}};
    }
    if (name[0] == 'u') {
      if (const std::optional<std::uint16_t> unit = hex_unit(name.substr(1)))
        return ClojureValue{ClojureCharacter{*unit}};
    }
    return wrong("unknown character " + core::quoted(name) + "; write others as \\u and four hexadecimal digits");
  }

  Result<ClojureValue> dispatch(int depth) {
    ++at_;
    if (at_ < text_.size() && text_[at_] == '{') return collection<ClojureSet>('}', depth);
    if (at_ < text_.size() && text_[at_] == '#') {
      ++at_;
      const std::string_view name = token();
      if (name == "NaN") return ClojureValue{std::nan("")};
      if (name == "Inf") return ClojureValue{HUGE_VAL};
      if (name == "-Inf") return ClojureValue{-HUGE_VAL};
      return wrong("unknown number ##" + std::string(name));
    }
    const std::string tag(token());
    const Result<ClojureValue> value = next(depth + 1);
    if (!value) return value;
    const std::string* text = std::get_if<std::string>(&value->value);
    if (text != nullptr && tag == "uuid") {
      if (const Result<JobId> id = JobId::parse(*text)) return ClojureValue{ClojureUuid{id->bytes()}};
    } else if (text != nullptr && tag == "inst") {
      if (const Result<Time> time = core::parse_time(*text)) {
        return ClojureValue{ClojureInstant{time->time_since_epoch().count()}};
      }
    } else if (text != nullptr && tag == "bide/bytes") {
      if (std::optional<std::string> bytes = from_hex(*text)) return ClojureValue{ClojureBytes{std::move(*bytes)}};
    } else if (text != nullptr && tag == "bide/nippy") {
      if (std::optional<std::string> bytes = from_hex(*text)) {
        NippyReader reader(*bytes);
        if (reader.next() && reader.done()) return ClojureValue{ClojureOpaque{std::move(*bytes)}};
      }
    } else {
      return wrong("unknown tag #" + tag);
    }
    return wrong("what follows #" + tag + " is not one");
  }

  Result<ClojureValue> atom() {
    const std::string_view name = token();
    if (name == "nil") return ClojureValue{};
    if (name == "true") return ClojureValue{true};
    if (name == "false") return ClojureValue{false};
    if (name[0] == ':') {
      if (name.size() == 1 || name[1] == ':') return wrong("a keyword without a name");
      return ClojureValue{ClojureKeyword{std::string(name.substr(1))}};
    }
    const std::size_t sign = name[0] == '-' || name[0] == '+' ? 1 : 0;
    if (name.size() > sign && name[sign] >= '0' && name[sign] <= '9') return number(name);
    return ClojureValue{ClojureSymbol{std::string(name)}};
  }

  Result<ClojureValue> number(std::string_view name) const {
    const std::string_view plain = name[0] == '+' ? name.substr(1) : name;
    std::int64_t whole = 0;
    const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), whole);
    if (error == std::errc() && end == plain.data() + plain.size()) return ClojureValue{whole};
    if (const std::optional<double> real = core::parse_number(plain);
        real && plain.find_first_of(".eE") != std::string_view::npos) {
      return ClojureValue{*real};
    }
    return wrong("invalid number " + core::quoted(name) + "; allowed are whole numbers of 64 bits, and doubles");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string to_edn(const ClojureValue& value) {
  std::string out;
  std::visit(Printer{out}, value.value);
  return out;
}

Result<ClojureValue> parse_edn(std::string_view text) { return Parser(text).document(); }

}  // namespace bide::brokers::rabbitmq::compat
