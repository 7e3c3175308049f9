// From our own messages, fields and errors to those of the client library, and back. Used by connection.cc only.

#pragma once

#include <amqp.h>
#include <amqp_framing.h>

#include <string>
#include <string_view>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_message.h"

namespace bide::brokers::rabbitmq {

inline std::string to_string(const amqp_bytes_t& bytes) {
  return bytes.len == 0 ? std::string() : std::string(static_cast<const char*>(bytes.bytes), bytes.len);
}

// Points into the text, which must live as long.
inline amqp_bytes_t bytes_of(std::string_view text) {
  amqp_bytes_t bytes;
  bytes.len = text.size();
  bytes.bytes = const_cast<char*>(text.data());
  return bytes;
}

// Their arrays come from the pool, their texts from the arguments.
amqp_table_t to_amqp_table(const FieldTable& table, amqp_pool_t& pool);
amqp_basic_properties_t to_amqp_properties(const AmqpMessage& message, amqp_pool_t& pool);

// On the wire, in bytes; never less than it is.
std::size_t properties_size(const AmqpMessage& message);
// Properties and names of headers are texts of at most 255 bytes.
bool fits_short_texts(const AmqpMessage& message);

FieldTable from_amqp_table(const amqp_table_t& table);
// Without the body.
AmqpMessage from_amqp_properties(const amqp_basic_properties_t& properties);

// Why the server has closed a channel or the connection, in its words.
Error server_error(int reply_code, const amqp_bytes_t& text);

}  // namespace bide::brokers::rabbitmq
