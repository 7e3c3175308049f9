// JSON, as far as Sneakers' error records need it.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "brokers/rabbitmq/amqp_message.h"

namespace bide::brokers::rabbitmq::compat {

// In quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
std::string to_json(const Field& field);
// {"content_type": ...}: the properties that are set, as Bunny names them.
std::string properties_json(const AmqpMessage& message);

// One JSON value and nothing else.
bool is_json(std::string_view text);

// A member of the object, or of the first object of the array: the text of a string, or anything else as it is written.
// Nothing when it is not there or `text` is not JSON.
std::optional<std::string> json_member(std::string_view text, std::string_view name);

// Those members of the same object that are texts, whole numbers, true or false.
FieldTable json_scalars(std::string_view text);

// Line breaks do not matter: Ruby writes some. Nothing when it is not base64.
std::optional<std::string> from_base64(std::string text);

}  // namespace bide::brokers::rabbitmq::compat
