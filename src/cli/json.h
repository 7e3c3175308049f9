// JsonObject, JsonArray: JSON text, put together in the order in which it shall be read.
//
//   JsonObject().add("id", id).add("counts", JsonObject().add("failed", 2)).text()

#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace bide::cli {

// With its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
bool is_utf8(std::string_view text);
// A number as short as it can be; null when there is no such number in JSON.
std::string json_number(double number);

class JsonArray;

class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::string_view value) { return raw(name, json_string(value)); }
  JsonObject& add(std::string_view name, const std::string& value) { return add(name, std::string_view(value)); }
  JsonObject& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  JsonObject& add(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  JsonObject& add(std::string_view name, double value) { return raw(name, json_number(value)); }
  template <std::integral T>
  JsonObject& add(std::string_view name, T value) {
    return raw(name, std::to_string(value));
  }
  JsonObject& add(std::string_view name, const JsonObject& value) { return raw(name, value.text()); }
  JsonObject& add(std::string_view name, const JsonArray& value);
  JsonObject& add_null(std::string_view name) { return raw(name, "null"); }
  JsonObject& raw(std::string_view name, std::string_view json);

  std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

class JsonArray {
 public:
  JsonArray& add(std::string_view value) { return raw(json_string(value)); }
  JsonArray& add(const JsonObject& value) { return raw(value.text()); }
  JsonArray& raw(std::string_view json);

  std::string text() const { return text_ + "]"; }

 private:
  std::string text_ = "[";
};

}  // namespace bide::cli
