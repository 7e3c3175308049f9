#include "brokers/rabbitmq/compat/json_text.h"

#include <charconv>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "core/text.h"
#include "core/time_text.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

using wire::JsonReader;
using wire::JsonWriter;

struct Writer {
  JsonWriter& out;

  void operator()(std::monostate) const { out.null(); }
  void operator()(bool flag) const { out.boolean(flag); }
  void operator()(std::int64_t number) const { out.number(number); }
  void operator()(double number) const { out.number(number); }
  void operator()(const std::string& text) const { out.string(text); }
  void operator()(const FieldList& list) const {
    out.begin_array();
    for (const Field& field : list) std::visit(*this, field.value);
    out.end_array();
  }
  void operator()(const FieldTable& table) const {
    out.begin_object();
    for (const auto& [name, field] : table) {
      out.any_name(name);
      std::visit(*this, field.value);
    }
    out.end_object();
  }
};

// Of the object, or of the first object of the array: texts as such, everything else as it is written.
struct Member {
  std::string name;
  std::string value;
  bool is_text;
};
std::vector<Member> members_of(std::string_view text) {
  std::vector<Member> members;
  if (!is_json(text)) return members;
  JsonReader in(text);
  if (in.type() == JsonReader::Type::kArray && in.array() && !in.element()) return members;
  if (in.type() != JsonReader::Type::kObject || !in.object()) return members;
  while (const auto name = in.field()) {
    Member member{std::string(*name), {}, in.type() == JsonReader::Type::kString};
    member.value = member.is_text ? in.string() : in.raw();
    members.push_back(std::move(member));
  }
  return members;
}

// As Ruby prints a Time.
std::string ruby_time(std::uint64_t seconds) {
  std::string text = core::format_time(Time(std::chrono::seconds(static_cast<std::int64_t>(seconds))));
  text.replace(text.find('T'), 1, " ");
  return text.substr(0, text.find('.')) + " UTC";
}

}  // namespace

std::string json_string(std::string_view text) { return to_json(Field(text)); }

std::string to_json(const Field& field) {
  std::string text;
  JsonWriter out(text);
  std::visit(Writer{out}, field.value);
  return text;
}

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

bool is_json(std::string_view text) {
  JsonReader in(text);
  in.raw();
  in.end();
  return in.ok();
}

std::optional<std::string> json_member(std::string_view text, std::string_view name) {
  std::optional<std::string> found;
  for (Member& member : members_of(text)) {
    if (member.name == name) found = std::move(member.value);
  }
  return found;
}

FieldTable json_scalars(std::string_view text) {
  FieldTable fields;
  for (const auto& [name, value, is_text] : members_of(text)) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (is_text) {
      fields.emplace_back(name, value);
    } else if (value == "true" || value == "false") {
      fields.emplace_back(name, value == "true");
    } else if (error == std::errc() && end == value.data() + value.size()) {
      fields.emplace_back(name, number);
    }
  }
  return fields;
}

std::optional<std::string> from_base64(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
  return core::from_base64(text);
}

}  // namespace bide::brokers::rabbitmq::compat
