// Whole answers: written by a server, and read by whoever asked it. What is not as it should be makes the reader fail,
// and the whole answer with it.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/result.h"
#include "wire/fields.h"
#include "wire/json_reader.h"

namespace bide::wire {

template <class T>
std::string to_json(const T& value) {
  std::string text;
  JsonWriter out(text);
  write_value(out, value);
  return text;
}

// {"name":[...]}
template <class T>
std::string list_json(std::string_view name, const std::vector<T>& items, std::size_t item_bytes = 0) {
  return object_text([&](JsonWriter& out) { write_value(out.name(name), items); }, items.size() * item_bytes + 32);
}

// "status" and, where there is one, "problem".
void write_status(JsonWriter& out, const MaybeProblem& problem, int status_when_well = 200);

template <class T>
Result<T> checked(JsonReader& in, T value) {
  in.end();
  if (in.ok()) return value;
  return Error{ErrorCode::kIoError, "the server's answer cannot be read: at byte " + std::to_string(in.fault().offset) +
                                        ", " + in.fault().text};
}

template <class T>
Result<T> read_document(std::string_view body, T value = {}) {
  JsonReader in(body, kDeepestAnswer);
  read_answer(in, value);
  return checked(in, std::move(value));
}

// Of an object only the value of this name: `take` reads it into `value`.
template <class T, class Take>
Result<T> read_named(std::string_view body, std::string_view wanted, T& value, Take take) {
  JsonReader in(body, kDeepestAnswer);
  in.object();
  while (const auto name = in.field()) {
    if (*name == wanted) {
      take(in);
    } else {
      in.raw();
    }
  }
  return checked(in, std::move(value));
}

// `read_item` reads one item of the array of this name.
template <class T, class ReadItem>
Result<std::vector<T>> read_list(std::string_view body, std::string_view name, ReadItem read_item) {
  std::vector<T> items;
  return read_named(body, name, items, [&](JsonReader& in) {
    in.array();
    while (in.element()) items.push_back(read_item(in));
  });
}
template <class T>
Result<std::vector<T>> read_list(std::string_view body, std::string_view name) {
  return read_list<T>(body, name, [](JsonReader& in) {
    T item;
    read_answer(in, item);
    return item;
  });
}

// Each item has a problem, or not.
Result<std::vector<Status>> read_statuses(std::string_view body, std::string_view name);

}  // namespace bide::wire
