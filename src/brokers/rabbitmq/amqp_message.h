// AmqpMessage: a message as AMQP 0-9-1 carries it, and Field: one value of its headers. Free of any client library, so
// that whoever makes or reads messages can be tested without a server.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bide::brokers::rabbitmq {

struct Field;

using FieldList = std::vector<Field>;
using FieldTable = std::vector<std::pair<std::string, Field>>;  // In the order of the wire; names may repeat.

// Integers of every width are read as 64 bits; a timestamp is an integer of its seconds.
struct Field {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, FieldList, FieldTable> value = {};

  Field() = default;
  Field(bool flag) : value(flag) {}
  Field(std::int64_t number) : value(number) {}
  Field(int number) : value(std::int64_t{number}) {}
  Field(double number) : value(number) {}
  Field(std::string text) : value(std::move(text)) {}
  Field(std::string_view text) : value(std::string(text)) {}
  Field(const char* text) : value(std::string(text)) {}
  Field(FieldList list) : value(std::move(list)) {}
  Field(FieldTable table) : value(std::move(table)) {}

  const std::int64_t* number() const { return std::get_if<std::int64_t>(&value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const FieldList* list() const { return std::get_if<FieldList>(&value); }
  const FieldTable* table() const { return std::get_if<FieldTable>(&value); }

  friend bool operator==(const Field& a, const Field& b) { return a.value == b.value; }
};

// The first of that name; null when there is none.
inline const Field* find_field(const FieldTable& table, std::string_view name) {
  for (const auto& [key, field] : table) {
    if (key == name) return &field;
  }
  return nullptr;
}

// An empty text is a property that is not set.
struct AmqpMessage {
  std::string message_id = {};
  std::string type = {};
  std::string content_type = {};
  std::string content_encoding = {};
  std::string correlation_id = {};
  std::string reply_to = {};
  std::string expiration = {};  // Milliseconds, as text.
  std::string app_id = {};
  std::optional<std::uint64_t> timestamp = {};  // Seconds since 1970.
  std::optional<std::uint8_t> priority = {};
  bool persistent = true;
  FieldTable headers = {};
  std::string body = {};

  friend bool operator==(const AmqpMessage&, const AmqpMessage&) = default;
};

}  // namespace bide::brokers::rabbitmq
