#include "brokers/rabbitmq/amqp_fields.h"

#include <algorithm>
#include <array>
#include <limits>

namespace bide::brokers::rabbitmq {

namespace {

// Deeper than any message of ours; what a stranger nests deeper is left out.
constexpr int kDepth = 16;

amqp_field_value_t to_amqp_value(const Field& field, amqp_pool_t& pool);

amqp_array_t to_amqp_array(const FieldList& list, amqp_pool_t& pool) {
  amqp_array_t array{};
  array.num_entries = static_cast<int>(list.size());
  array.entries = static_cast<amqp_field_value_t*>(amqp_pool_alloc(&pool, list.size() * sizeof(amqp_field_value_t)));
  for (std::size_t i = 0; i < list.size(); ++i) array.entries[i] = to_amqp_value(list[i], pool);
  return array;
}

amqp_field_value_t to_amqp_value(const Field& field, amqp_pool_t& pool) {
  amqp_field_value_t out{};
  struct Writer {
    amqp_field_value_t& out;
    amqp_pool_t& pool;
    void operator()(std::monostate) const { out.kind = AMQP_FIELD_KIND_VOID; }
    void operator()(bool value) const { out.kind = AMQP_FIELD_KIND_BOOLEAN, out.value.boolean = value ? 1 : 0; }
    void operator()(std::int64_t value) const { out.kind = AMQP_FIELD_KIND_I64, out.value.i64 = value; }
    void operator()(double value) const { out.kind = AMQP_FIELD_KIND_F64, out.value.f64 = value; }
    void operator()(const std::string& value) const {
      out.kind = AMQP_FIELD_KIND_UTF8, out.value.bytes = bytes_of(value);
    }
    void operator()(const FieldList& value) const {
      out.kind = AMQP_FIELD_KIND_ARRAY, out.value.array = to_amqp_array(value, pool);
    }
    void operator()(const FieldTable& value) const {
      out.kind = AMQP_FIELD_KIND_TABLE, out.value.table = to_amqp_table(value, pool);
    }
  };
  std::visit(Writer{out, pool}, field.value);
  return out;
}

FieldTable from_table(const amqp_table_t& table, int depth);

Field from_value(const amqp_field_value_t& value, int depth) {
  switch (value.kind) {
    case AMQP_FIELD_KIND_BOOLEAN:
      return value.value.boolean != 0;
    case AMQP_FIELD_KIND_I8:
      return std::int64_t{value.value.i8};
    case AMQP_FIELD_KIND_U8:
      return std::int64_t{value.value.u8};
    case AMQP_FIELD_KIND_I16:
      return std::int64_t{value.value.i16};
    case AMQP_FIELD_KIND_U16:
      return std::int64_t{value.value.u16};
    case AMQP_FIELD_KIND_I32:
      return std::int64_t{value.value.i32};
    case AMQP_FIELD_KIND_U32:
      return std::int64_t{value.value.u32};
    case AMQP_FIELD_KIND_I64:
      return value.value.i64;
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP:
      return value.value.u64 > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                 ? Field(std::numeric_limits<std::int64_t>::max())
                 : Field(static_cast<std::int64_t>(value.value.u64));
    case AMQP_FIELD_KIND_F32:
      return static_cast<double>(value.value.f32);
    case AMQP_FIELD_KIND_F64:
      return value.value.f64;
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES:
      return to_string(value.value.bytes);
    case AMQP_FIELD_KIND_ARRAY: {
      FieldList list;
      for (int i = 0; depth > 0 && i < value.value.array.num_entries; ++i) {
        list.push_back(from_value(value.value.array.entries[i], depth - 1));
      }
      return list;
    }
    case AMQP_FIELD_KIND_TABLE:
      return from_table(value.value.table, depth - 1);
    default:
      return {};
  }
}

FieldTable from_table(const amqp_table_t& table, int depth) {
  FieldTable fields;
  for (int i = 0; depth > 0 && i < table.num_entries; ++i) {
    fields.emplace_back(to_string(table.entries[i].key), from_value(table.entries[i].value, depth - 1));
  }
  return fields;
}

// Of the server: 403 ACCESS_REFUSED, 404 NOT_FOUND, 405 RESOURCE_LOCKED, 406 PRECONDITION_FAILED ...
ErrorCode code_of(int reply_code) {
  switch (reply_code) {
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
      return ErrorCode::kNotFound;
    case 405:
      return ErrorCode::kBusy;
    case 406:
      return ErrorCode::kInvalidArgument;
    case 530:
      return ErrorCode::kPermissionDenied;  // NOT_ALLOWED: the virtual host.
    case 540:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

amqp_table_t to_amqp_table(const FieldTable& table, amqp_pool_t& pool) {
  amqp_table_t out{};
  out.num_entries = static_cast<int>(table.size());
  out.entries = static_cast<amqp_table_entry_t*>(amqp_pool_alloc(&pool, table.size() * sizeof(amqp_table_entry_t)));
  for (std::size_t i = 0; i < table.size(); ++i) {
    out.entries[i].key = bytes_of(table[i].first);
    out.entries[i].value = to_amqp_value(table[i].second, pool);
  }
  return out;
}

amqp_basic_properties_t to_amqp_properties(const AmqpMessage& message, amqp_pool_t& pool) {
  amqp_basic_properties_t out{};
  const auto set = [&out](amqp_bytes_t& field, amqp_flags_t flag, const std::string& text) {
    if (text.empty()) return;
    field = bytes_of(text);
    out._flags |= flag;
  };
  set(out.message_id, AMQP_BASIC_MESSAGE_ID_FLAG, message.message_id);
  set(out.type, AMQP_BASIC_TYPE_FLAG, message.type);
  set(out.content_type, AMQP_BASIC_CONTENT_TYPE_FLAG, message.content_type);
  set(out.content_encoding, AMQP_BASIC_CONTENT_ENCODING_FLAG, message.content_encoding);
  set(out.correlation_id, AMQP_BASIC_CORRELATION_ID_FLAG, message.correlation_id);
  set(out.reply_to, AMQP_BASIC_REPLY_TO_FLAG, message.reply_to);
  set(out.expiration, AMQP_BASIC_EXPIRATION_FLAG, message.expiration);
  set(out.app_id, AMQP_BASIC_APP_ID_FLAG, message.app_id);
  if (message.timestamp) out.timestamp = *message.timestamp, out._flags |= AMQP_BASIC_TIMESTAMP_FLAG;
  if (message.priority) out.priority = *message.priority, out._flags |= AMQP_BASIC_PRIORITY_FLAG;
  out.delivery_mode = message.persistent ? AMQP_DELIVERY_PERSISTENT : AMQP_DELIVERY_NONPERSISTENT;
  out._flags |= AMQP_BASIC_DELIVERY_MODE_FLAG;
  if (!message.headers.empty()) {
    out.headers = to_amqp_table(message.headers, pool);
    out._flags |= AMQP_BASIC_HEADERS_FLAG;
  }
  return out;
}

namespace {

constexpr std::size_t kShortText = 255;

std::size_t size_of(const FieldTable& table);

std::size_t size_of(const Field& field) {
  if (const std::string* text = field.text()) return 5 + text->size();
  if (const FieldTable* table = field.table()) return 1 + size_of(*table);
  std::size_t size = 9;
  if (const FieldList* list = field.list()) {
    for (const Field& each : *list) size += size_of(each);
  }
  return size;
}

std::size_t size_of(const FieldTable& table) {
  std::size_t size = 4;
  for (const auto& [name, field] : table) size += 1 + name.size() + size_of(field);
  return size;
}

bool names_fit(const Field& field);

bool names_fit(const FieldTable& table) {
  return std::all_of(table.begin(), table.end(),
                     [](const auto& entry) { return entry.first.size() <= kShortText && names_fit(entry.second); });
}

bool names_fit(const Field& field) {
  if (const FieldTable* table = field.table()) return names_fit(*table);
  const FieldList* const list = field.list();
  return list == nullptr || std::all_of(list->begin(), list->end(), [](const Field& each) { return names_fit(each); });
}

std::array<const std::string*, 8> texts_of(const AmqpMessage& message) {
  return {&message.message_id,     &message.type,     &message.content_type, &message.content_encoding,
          &message.correlation_id, &message.reply_to, &message.expiration,   &message.app_id};
}

}  // namespace

std::size_t properties_size(const AmqpMessage& message) {
  std::size_t size = 16;  // Flags, timestamp, priority, delivery mode.
  for (const std::string* text : texts_of(message)) size += 1 + text->size();
  return size + size_of(message.headers);
}

bool fits_short_texts(const AmqpMessage& message) {
  const auto texts = texts_of(message);
  return std::all_of(texts.begin(), texts.end(), [](const std::string* text) { return text->size() <= kShortText; }) &&
         names_fit(message.headers);
}

FieldTable from_amqp_table(const amqp_table_t& table) { return from_table(table, kDepth); }

AmqpMessage from_amqp_properties(const amqp_basic_properties_t& properties) {
  AmqpMessage message;
  const auto take = [&properties](std::string& text, amqp_flags_t flag, const amqp_bytes_t& field) {
    if ((properties._flags & flag) != 0) text = to_string(field);
  };
  take(message.message_id, AMQP_BASIC_MESSAGE_ID_FLAG, properties.message_id);
  take(message.type, AMQP_BASIC_TYPE_FLAG, properties.type);
  take(message.content_type, AMQP_BASIC_CONTENT_TYPE_FLAG, properties.content_type);
  take(message.content_encoding, AMQP_BASIC_CONTENT_ENCODING_FLAG, properties.content_encoding);
  take(message.correlation_id, AMQP_BASIC_CORRELATION_ID_FLAG, properties.correlation_id);
  take(message.reply_to, AMQP_BASIC_REPLY_TO_FLAG, properties.reply_to);
  take(message.expiration, AMQP_BASIC_EXPIRATION_FLAG, properties.expiration);
  take(message.app_id, AMQP_BASIC_APP_ID_FLAG, properties.app_id);
  if ((properties._flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0) message.timestamp = properties.timestamp;
  if ((properties._flags & AMQP_BASIC_PRIORITY_FLAG) != 0) message.priority = properties.priority;
  message.persistent =
      (properties._flags & AMQP_BASIC_DELIVERY_MODE_FLAG) != 0 && properties.delivery_mode == AMQP_DELIVERY_PERSISTENT;
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) != 0) message.headers = from_amqp_table(properties.headers);
  return message;
}

Error server_error(int reply_code, const amqp_bytes_t& text) {
  return {code_of(reply_code), "the server said: " + to_string(text)};
}

}  // namespace bide::brokers::rabbitmq
