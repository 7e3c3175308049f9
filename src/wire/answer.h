// Values of an answer, for whoever reads what a server of ours has written. Where it is not what it should be, the
// reader fails, and the whole answer with it.

#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bide/job.h"
#include "bide/result.h"
#include "core/time_text.h"
#include "wire/base64.h"
#include "wire/json_reader.h"

namespace bide::wire {

template <class T>
T answer_number(JsonReader& in) {
  T number = 0;
  const std::string_view text = in.number();
  if (!in.ok()) return 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) in.fail("wrong_type", "a number is out of range");
  return number;
}

inline Milliseconds answer_milliseconds(JsonReader& in) { return Milliseconds(answer_number<std::int64_t>(in)); }

inline JobId answer_id(JsonReader& in) {
  const auto id = JobId::parse(in.string());
  if (id) return *id;
  in.fail("wrong_type", "an id is not a UUID");
  return {};
}

inline Time answer_time(JsonReader& in) {
  const auto time = core::parse_time(in.string());
  if (time) return *time;
  in.fail("wrong_type", "a time is not valid");
  return {};
}

inline std::string answer_bytes(JsonReader& in) {
  auto bytes = from_base64(in.string());
  if (bytes) return std::move(*bytes);
  in.fail("wrong_type", "what should be base64 is not");
  return {};
}

// null is as good as nothing there.
inline bool answer_null(JsonReader& in) {
  if (in.type() != JsonReader::Type::kNull) return false;
  in.null();
  return true;
}

// An enumeration by the names that to_string() gives its values.
template <class E>
E answer_enum(JsonReader& in, E last) {
  const std::string_view name = in.string();
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    if (to_string(static_cast<E>(value)) == name) return static_cast<E>(value);
  }
  in.fail("wrong_type", "a name is not known");
  return {};
}

// An item that has a problem, or not.
Status answer_status(JsonReader& in);

template <class T>
Result<T> checked(JsonReader& in, T value) {
  in.end();
  if (in.ok()) return value;
  return Error{ErrorCode::kIoError, "the server's answer cannot be read: at byte " + std::to_string(in.fault().offset) +
                                        ", " + in.fault().text};
}

}  // namespace bide::wire
