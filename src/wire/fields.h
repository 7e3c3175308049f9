// Field: one row for each JSON field of a thing that the API speaks of: name, type, limits, text for people, how it is
// read and how it is written. A table of rows is all there is to add a field to: reader, writer and JSON schema follow
// from it.
//
//   constexpr auto kRows = std::to_array<Field<Explanation>>({
//       field<&Explanation::code>("code").required(),
//       field<&Explanation::text>("text").required().says("One sentence, for people."),
//   });
//
// W is what is written, R what is read into; mostly the same.

#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "core/enums.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"
#include "wire/take_values.h"

namespace bide::wire {

// ---- Types, as a JSON schema says them.

using Names = std::vector<std::string_view>;

struct JsonType {
  std::string_view type = {};  // Empty: any value.
  std::string_view format = {};
  std::string_view ref = {};      // The name of another schema, in place of a type.
  Names (*names)() = nullptr;     // An enumeration, in place of a type.
  bool list = false;              // An array of these.
  bool map = false;               // An object whose values are these.
  std::string_view or_type = {};  // Also allowed.
};

inline constexpr JsonType kAnyType{};
inline constexpr JsonType kStringType{.type = "string"};
inline constexpr JsonType kIntegerType{.type = "integer"};
inline constexpr JsonType kBooleanType{.type = "boolean"};
inline constexpr JsonType kUuidType{.type = "string", .format = "uuid"};
inline constexpr JsonType kTimeType{.type = "string", .format = "date-time"};
inline constexpr JsonType kUrlType{.type = "string", .format = "uri"};
// Of a lease: digits, since not every language has whole numbers of 64 bits. A number is read too.
inline constexpr JsonType kTokenType{.type = "string", .or_type = "integer"};

constexpr JsonType ref(std::string_view schema) { return {.ref = schema}; }
constexpr JsonType list_of(JsonType item) {
  item.list = true;
  return item;
}
constexpr JsonType or_else(JsonType type, std::string_view other) {
  type.or_type = other;
  return type;
}

// The names of an enumeration up to this value, which is its last unless only some of them are allowed.
template <auto kLastValue>
Names names_until() {
  Names names;
  for (int value = 0; value <= static_cast<int>(kLastValue); ++value) {
    names.push_back(to_string(static_cast<decltype(kLastValue)>(value)));
  }
  return names;
}

// The schema of a struct that has rows of its own.
template <class T>
inline constexpr std::string_view kSchemaName = {};
template <>
inline constexpr std::string_view kSchemaName<AttemptCounts> = "AttemptCounts";
template <>
inline constexpr std::string_view kSchemaName<AttemptError> = "AttemptError";
template <>
inline constexpr std::string_view kSchemaName<JobPast> = "JobPast";
template <>
inline constexpr std::string_view kSchemaName<Step> = "Step";
template <>
inline constexpr std::string_view kSchemaName<Progress> = "Progress";
template <>
inline constexpr std::string_view kSchemaName<JobInfo> = "JobInfo";

template <class M>
constexpr JsonType type_of() {
  if constexpr (std::is_same_v<M, bool>)
    return kBooleanType;
  else if constexpr (std::is_enum_v<M>)
    return {.names = names_until<core::kLast<M>>};
  else if constexpr (std::is_floating_point_v<M>)
    return {.type = "number"};
  else if constexpr (std::integral<M> || std::is_same_v<M, Milliseconds>)
    return kIntegerType;
  else if constexpr (std::is_same_v<M, JobId>)
    return kUuidType;
  else if constexpr (std::is_same_v<M, Time>)
    return kTimeType;
  else if constexpr (std::is_same_v<M, std::string>)
    return kStringType;
  else if constexpr (requires { typename M::mapped_type; })
    return {.type = type_of<typename M::mapped_type>().type, .map = true};
  else if constexpr (requires { M().value(); })
    return type_of<typename M::value_type>();
  else if constexpr (requires { M().push_back({}); })
    return list_of(type_of<typename M::value_type>());
  else
    return ref(kSchemaName<M>);
}

// ---- Rows.

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::min();

// What a schema says of a field.
struct FieldInfo {
  std::string_view name;
  JsonType type = {};
  std::string_view text = {};     // For people.
  std::int64_t least = kNoLimit;  // Of a number; of a string or list: how long it is.
  std::int64_t most = kNoLimit;
  std::string_view pattern = {};
  std::string_view usual = {};  // What it is when it is not given, as JSON.
  bool required = false;        // Must be given. Of an answer: is always there.
};

struct Nothing {};  // For rows of what is written elsewhere: only their schema is of interest.

template <class W = Nothing, class R = W>
struct Field : FieldInfo {
  MaybeProblem (*read)(JsonReader&, const Field&, R&) = nullptr;  // Null: never read.
  void (*write)(JsonWriter&, const Field&, const W&) = nullptr;   // Null: not written, or together with another row.
  int group = 0;            // Of the rows with the same number at most one may be given. 0: no such rows.
  unsigned marks = 0;       // Means what the owner of the table says.
  bool omit_empty = false;  // Not written when it is as a new W has it.
  bool null_is_none = false;

  constexpr Field always() const { return with(&Field::required, true); }
  constexpr Field says(std::string_view what) const { return with(&Field::text, what); }
  constexpr Field of(JsonType what) const { return with(&Field::type, what); }
  // Null stands for none.
  constexpr Field or_null() const { return of(or_else(type, "null")).with(&Field::null_is_none, true); }
  constexpr Field at_least(std::int64_t limit) const { return with(&Field::least, limit); }
  constexpr Field at_most(std::int64_t limit) const { return with(&Field::most, limit); }
  constexpr Field within(std::int64_t from, std::int64_t to) const { return at_least(from).at_most(to); }
  constexpr Field like(std::string_view what) const { return with(&Field::pattern, what); }
  constexpr Field otherwise(std::string_view json) const { return with(&Field::usual, json); }
  constexpr Field one_of(int number) const { return with(&Field::group, number); }
  constexpr Field marked(unsigned bits) const { return with(&Field::marks, bits); }
  constexpr Field unless_empty() const { return with(&Field::omit_empty, true); }

 private:
  template <class C, class M>
  constexpr Field with(M C::*member, std::type_identity_t<M> value) const {
    Field changed = *this;
    changed.*member = value;
    return changed;
  }
};

// The rows of a struct that is read and written by them alone.
template <class T>
std::span<const Field<T>> rows_of();
template <>
std::span<const Field<AttemptCounts>> rows_of<AttemptCounts>();
template <>
std::span<const Field<AttemptError>> rows_of<AttemptError>();
template <>
std::span<const Field<JobPast>> rows_of<JobPast>();
template <>
std::span<const Field<Step>> rows_of<Step>();
template <>
std::span<const Field<Progress>> rows_of<Progress>();
template <>
std::span<const Field<JobInfo>> rows_of<JobInfo>();

// A job's information has the fields of the job as well.
void write_value(JsonWriter& out, const JobInfo& info);
void read_answer(JsonReader& in, JobInfo& info);
// A schedule's, those of the schedule and of its job.
void write_value(JsonWriter& out, const ScheduleInfo& info);
void read_answer(JsonReader& in, ScheduleInfo& info);

// ---- Writing.

template <class W, class R>
void write_rows(JsonWriter& out, std::span<const Field<W, R>> rows, const std::type_identity_t<W>& value) {
  for (const Field<W, R>& row : rows) {
    if (row.write != nullptr) row.write(out, row, value);
  }
}

template <class M>
void write_value(JsonWriter& out, const M& value) {
  if constexpr (std::is_enum_v<M>) {
    out.string(to_string(value));
  } else if constexpr (requires { typename M::mapped_type; }) {
    out.begin_object();
    for (const auto& [name, each] : value) out.any_name(name).value(each);
    out.end_object();
  } else if constexpr (requires { out.value(value); }) {
    out.value(value);
  } else if constexpr (requires { value.has_value(); }) {
    value ? write_value(out, *value) : void(out.null());
  } else if constexpr (requires { value.begin(); }) {
    out.begin_array();
    for (const auto& each : value) write_value(out, each);
    out.end_array();
  } else {
    out.begin_object();
    write_rows(out, rows_of<M>(), value);
    out.end_object();
  }
}

// A document of one object.
template <class Body>
std::string object_text(Body body, std::size_t bytes = 0) {
  std::string text;
  text.reserve(bytes);
  JsonWriter out(text);
  out.begin_object();
  body(out);
  out.end_object();
  return text;
}

// ---- Reading.

// The fields of one object, one by one: known ones are read, given twice or together with what excludes them refused.
template <class W, class R = W>
class FieldReader {
 public:
  explicit FieldReader(std::span<const Field<W, R>> rows) : rows_(rows) {}

  // Null: there is no such field.
  const Field<W, R>* find(std::string_view name) const {
    for (const Field<W, R>& row : rows_) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }

  MaybeProblem read(JsonReader& in, const Field<W, R>& row, R& target) {
    const std::uint64_t bit = std::uint64_t{1} << (&row - rows_.data());
    if ((seen_ & bit) != 0) return duplicate_field(row.name);
    if (row.group != 0) {
      for (const Field<W, R>& other : rows_) {
        if (other.group == row.group && has(other)) return conflicting_fields(other.name, row.name);
      }
    }
    seen_ |= bit;
    return row.read(in, row, target);
  }

  bool has(const Field<W, R>& row) const { return (seen_ >> (&row - rows_.data()) & 1) != 0; }
  bool has(std::string_view name) const { return has(*find(name)); }

  // The first field that must be given and was not.
  MaybeProblem find_missing() const {
    for (const Field<W, R>& row : rows_) {
      if (row.required && !has(row)) return missing_field(row.name);
    }
    return std::nullopt;
  }

  Names names() const {
    Names names;
    for (const Field<W, R>& row : rows_) names.push_back(row.name);
    return names;
  }

 private:
  const std::span<const Field<W, R>> rows_;
  std::uint64_t seen_ = 0;  // Bits by place in the table.
};

// An object of a request: any other field is a problem. Faults of the JSON stay in the reader.
template <class W, class R>
MaybeProblem read_fields(JsonReader& in, FieldReader<W, R>& fields, std::type_identity_t<R>& target) {
  in.object();
  while (const auto name = in.field()) {
    const Field<W, R>* row = fields.find(*name);
    if (row == nullptr) return unknown_field(*name, fields.names());
    if (MaybeProblem problem = fields.read(in, *row, target)) return problem;
  }
  return std::nullopt;
}

// A whole request body of one object.
template <class W, class R>
MaybeProblem read_request(std::string_view body, std::string_view wanted, FieldReader<W, R>& fields,
                          std::type_identity_t<R>& target) {
  if (is_blank(body)) return empty_body(wanted);
  JsonReader in(body);
  if (MaybeProblem problem = read_fields(in, fields, target)) return problem;
  in.end();
  if (!in.ok()) return problem_of(in.fault());
  return fields.find_missing();
}

// An object of an answer. Fields that are not known are passed over, so that an older client gets along with a newer
// server; one that cannot be read makes the reader fail, and the whole answer with it.
template <class W, class R>
void read_answer_field(JsonReader& in, FieldReader<W, R>& fields, std::string_view name, R& target) {
  const Field<W, R>* row = fields.find(name);
  if (row == nullptr || row->read == nullptr) {
    in.raw();
  } else if (row->null_is_none && in.type() == JsonReader::Type::kNull) {
    in.null();
  } else if (const MaybeProblem problem = fields.read(in, *row, target)) {
    in.fail("wrong_type", problem->detail);
  }
}

template <class T>
void read_answer(JsonReader& in, T& value) {
  FieldReader<T> fields(rows_of<T>());
  in.object();
  while (const auto name = in.field()) read_answer_field(in, fields, *name, value);
}

template <class M>
MaybeProblem read_value(JsonReader& in, const FieldInfo& row, M& out) {
  if constexpr (std::is_same_v<M, bool>) {
    return take_boolean(in, row.name, out);
  } else if constexpr (std::is_enum_v<M>) {
    std::size_t index = 0;
    MaybeProblem problem = take_one_of(in, row.name, row.type.names(), index);
    if (!problem && in.ok()) out = static_cast<M>(index);
    return problem;
  } else if constexpr (std::is_same_v<M, double>) {
    return take_number(in, row.name, out);
  } else if constexpr (std::integral<M>) {
    constexpr auto least = std::numeric_limits<M>::min();
    constexpr auto most = std::numeric_limits<M>::max();
    return take_integer(in, row.name, row.least == kNoLimit ? least : static_cast<M>(row.least),
                        row.most == kNoLimit ? most : static_cast<M>(row.most), out);
  } else if constexpr (std::is_same_v<M, Milliseconds>) {
    std::int64_t count = 0;
    MaybeProblem problem = read_value(in, row, count);
    out = Milliseconds(count);
    return problem;
  } else if constexpr (std::is_same_v<M, JobId>) {
    return take_id(in, row.name, out);
  } else if constexpr (std::is_same_v<M, Time>) {
    return take_time(in, row.name, out);
  } else if constexpr (std::is_same_v<M, std::string>) {
    return take_text(in, row.name, out);
  } else if constexpr (requires { typename M::mapped_type; }) {
    in.object();
    while (const auto name = in.field()) {
      auto& value = out[std::string(*name)];
      if (MaybeProblem problem = read_value(in, row, value)) return problem;
    }
    return wrong_type(in, row.name);
  } else if constexpr (requires { out.has_value(); }) {
    return read_value(in, row, out.emplace());
  } else if constexpr (requires { out.begin(); }) {
    in.array();
    while (in.element()) {
      if (row.most != kNoLimit && out.size() == static_cast<std::size_t>(row.most))
        return too_many_items(row.name, out.size());
      if (MaybeProblem problem = read_value(in, row, out.emplace_back())) return problem;
    }
    return wrong_type(in, row.name);
  } else {
    read_answer(in, out);
    return wrong_type(in, row.name);
  }
}

// ---- Making rows.

template <class C, class M>
C class_of(M C::*);
template <class C, class M>
M member_of(M C::*);

template <class M>
bool is_empty(const M& value) {
  if constexpr (requires { value.empty(); })
    return value.empty();
  else if constexpr (requires { value.has_value(); })
    return !value.has_value();
  else if constexpr (std::equality_comparable<M>)
    return value == M{};
  else
    return false;
}

// A member, or a member of a member: field<&Settled::lease, &LeaseRef::id>("id").
template <auto kFirst, auto... kRest>
constexpr auto field(std::string_view name) {
  using W = decltype(class_of(kFirst));
  using M = std::remove_cvref_t<decltype(((std::declval<W&>().*kFirst).*....*kRest))>;
  Field<W> row;
  row.name = name;
  row.type = type_of<M>();
  row.null_is_none = requires(M value) { value.has_value(); };
  row.read = [](JsonReader& in, const Field<W>& own, W& target) {
    return read_value(in, own, ((target.*kFirst).*....*kRest));
  };
  row.write = [](JsonWriter& out, const Field<W>& own, const W& value) {
    const M& member = ((value.*kFirst).*....*kRest);
    if (!own.omit_empty || !is_empty(member)) write_value(out.name(own.name), member);
  };
  return row;
}
template <auto... kPath>
constexpr auto always(std::string_view name) {
  return field<kPath...>(name).always();
}
template <auto... kPath>
constexpr auto maybe(std::string_view name) {
  return field<kPath...>(name).unless_empty();
}

// Bytes: as text where they are UTF-8, otherwise under the name of the base64() row beside it.
template <auto kMember>
constexpr auto bytes(std::string_view name) {
  auto row = field<kMember>(name);
  row.write = [](JsonWriter& out, const decltype(row)& own, const auto& value) {
    if (!own.omit_empty || !(value.*kMember).empty()) out.bytes(own.name, value.*kMember);
  };
  return row;
}
template <auto kMember>
constexpr auto base64(std::string_view name) {
  auto row = field<kMember>(name);
  row.write = nullptr;
  row.read = [](JsonReader& in, const decltype(row)& own, auto& target) {
    return take_base64(in, own.name, target.*kMember);
  };
  return row;
}

// A row that is read by this function only.
template <class W, class R = W>
constexpr Field<W, R> row(std::string_view name, JsonType type,
                          MaybeProblem (*read)(JsonReader&, const Field<W, R>&, R&) = nullptr,
                          void (*write)(JsonWriter&, const Field<W, R>&, const W&) = nullptr) {
  Field<W, R> made;
  made.name = name;
  made.type = type;
  made.read = read;
  made.write = write;
  return made;
}

// ---- Schemas.

struct Schema {
  std::string_view name;
  std::string json;  // References others as #/components/schemas/NAME.
};
using Schemas = std::vector<Schema>;

struct SchemaOptions {
  std::string_view text = {};
  bool limits = true;   // Not for answers: what is stored may come from elsewhere.
  Names required = {};  // Besides the fields that say so themselves.
};

std::string object_schema(std::span<const FieldInfo> fields, const SchemaOptions& options = {});

template <class... Rows>
std::string object_schema(const SchemaOptions& options, const Rows&... tables) {
  std::vector<FieldInfo> fields;
  (fields.insert(fields.end(), std::begin(tables), std::end(tables)), ...);
  return object_schema(fields, options);
}
// {"name":[item, ...]}
std::string list_schema(std::string_view name, std::string_view item, std::int64_t most = kNoLimit);
std::string any_of(std::initializer_list<std::string> schemas);
std::string type_schema(JsonType type, std::int64_t most = kNoLimit);

// A field of what is written elsewhere.
constexpr Field<> shape(std::string_view name, JsonType type) { return row<Nothing>(name, type); }

// ---- Schemas: what the JSON of the API looks like, as JSON Schema (2020-12), for the OpenAPI document. They follow from
// the tables of fields; a test holds real answers against them.

std::span<const Schema> schemas();

// Of each file here. One that is a choice of others is put together in schemas().
void add_backup_schemas(Schemas& schemas);
void add_batch_schemas(Schemas& schemas);
void add_change_schemas(Schemas& schemas);
void add_dashboard_schemas(Schemas& schemas);
void add_edit_schemas(Schemas& schemas);
void add_event_schemas(Schemas& schemas);
void add_flow_schemas(Schemas& schemas);
void add_info_schemas(Schemas& schemas);
void add_job_schemas(Schemas& schemas);
void add_lease_schemas(Schemas& schemas);
void add_rules_schemas(Schemas& schemas);
void add_schedule_schemas(Schemas& schemas);
void add_settle_schemas(Schemas& schemas);

}  // namespace bide::wire
