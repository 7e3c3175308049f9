// JsonObject, JsonArray: JSON values that are composed from parts. wire::JsonWriter writes the text, as it does for the
// HTTP API; its types (QueueInfo, AttemptCounts ...) can be added as they are.
//
//   JsonObject().add("id", id).add("counts", JsonObject().add("failed", 2)).text()

#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/time_text.h"
#include "wire/fields.h"
#include "wire/info_json.h"
#include "wire/json_writer.h"

namespace bide::cli {

class JsonObject;
class JsonArray;

template <class T>
void write_json(wire::JsonWriter& out, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    out.boolean(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    out.number(value);
  } else if constexpr (std::same_as<T, std::nullptr_t>) {
    out.null();
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    out.string(value);
  } else if constexpr (std::same_as<T, Time>) {
    out.string(core::format_time(value));
  } else if constexpr (std::same_as<T, JobId>) {
    out.string(value.to_string());
  } else if constexpr (std::same_as<T, JsonObject> || std::same_as<T, JsonArray>) {
    out.raw(value.text());
  } else {
    wire::write_value(out, value);
  }
}

template <class T>
void write_json(wire::JsonWriter& out, const std::optional<T>& value) {
  if (value) return write_json(out, *value);
  out.null();
}

class JsonArray {
 public:
  JsonArray() = default;
  template <class T>
  explicit JsonArray(const std::vector<T>& values) {
    for (const T& value : values) add(value);
  }
  // Of what `convert` makes of each.
  template <class T, class Convert>
  JsonArray(const std::vector<T>& values, Convert convert) {
    for (const T& value : values) add(convert(value));
  }

  template <class T>
  JsonArray& add(const T& value) {
    if (text_.size() > 1) text_ += ',';
    wire::JsonWriter out(text_);
    write_json(out, value);
    return *this;
  }

  std::string text() const { return text_ + "]"; }

 private:
  std::string text_ = "[";
};

class JsonObject {
 public:
  template <class T>
  JsonObject& add(std::string_view name, const T& value) {
    wire::JsonWriter out = next();
    out.any_name(name);
    write_json(out, value);
    return *this;
  }
  // Under this name when it is UTF-8, otherwise under name + "_base64".
  JsonObject& add_bytes(std::string_view name, std::string_view value) {
    next().bytes(name, value);
    return *this;
  }
  JsonObject& raw(std::string_view name, std::string_view json) {
    next().any_name(name).raw(json);
    return *this;
  }

  std::string text() const { return text_ + "}"; }

 private:
  wire::JsonWriter next() {
    if (text_.size() > 1) text_ += ',';
    return wire::JsonWriter(text_);
  }

  std::string text_ = "{";
};

// With its quotes.
inline std::string json_string(std::string_view text) {
  std::string out;
  wire::JsonWriter(out).string(text);
  return out;
}

}  // namespace bide::cli
