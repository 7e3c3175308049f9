// JsonWriter: JSON text, appended to a string as it is said. Commas are its business; that names and values alternate
// is the caller's.
//
//   JsonWriter(out).begin_object().field("id", id).name("tags").begin_array().string("a").end_array().end_object();

#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/job_id.h"

namespace bide::wire {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return begin('{'); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array() { return begin('['); }
  JsonWriter& end_array() { return end(']'); }

  JsonWriter& name(std::string_view name);  // Plain: nothing in it needs an escape.
  JsonWriter& any_name(std::string_view name);
  JsonWriter& string(std::string_view text);  // Bytes that are not UTF-8 become U+FFFD.
  JsonWriter& raw(std::string_view json);
  JsonWriter& null() { return raw("null"); }
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& number(double value);  // null when there is no such number in JSON.
  template <std::integral T>
  JsonWriter& number(T value) {
    char digits[24];
    const auto last = std::to_chars(digits, digits + sizeof digits, value);
    return raw(std::string_view(digits, static_cast<std::size_t>(last.ptr - digits)));
  }

  JsonWriter& value(std::string_view text) { return string(text); }
  JsonWriter& value(const std::string& text) { return string(text); }
  JsonWriter& value(const char* text) { return string(text); }
  JsonWriter& value(bool truth) { return boolean(truth); }
  JsonWriter& value(double given) { return number(given); }
  template <std::integral T>
  JsonWriter& value(T given) {
    return number(given);
  }
  JsonWriter& value(const JobId& id);
  JsonWriter& value(Time time);
  JsonWriter& value(const std::optional<Time>& time) { return time ? value(*time) : null(); }
  JsonWriter& value(Milliseconds span) { return number(span.count()); }

  template <class T>
  JsonWriter& field(std::string_view key, const T& given) {
    return name(key).value(given);
  }

  // Lease tokens are strings of digits: not every language has whole numbers of 64 bits.
  JsonWriter& token(std::uint64_t token) {
    name("token").out_ += '"';
    number(token).out_ += '"';
    return *this;
  }

  // Under this name when it is UTF-8, otherwise under name + "_base64".
  JsonWriter& bytes(std::string_view key, std::string_view value);

 private:
  JsonWriter& begin(char bracket) {
    comma();
    out_ += bracket;
    comma_ = false;
    return *this;
  }
  JsonWriter& end(char bracket) {
    out_ += bracket;
    comma_ = true;
    return *this;
  }
  void comma() {
    if (comma_) out_ += ',';
  }

  std::string& out_;
  bool comma_ = false;
};

}  // namespace bide::wire
