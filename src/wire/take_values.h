// Values of a request that mean something, taken from JSON: durations, times, ids, tokens, whole numbers. Each gives
// the problem with the value, named after its field; faults of the JSON itself stay in the reader.

#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "core/job_rules.h"
#include "wire/json_reader.h"
#include "wire/problem.h"

namespace bide::wire {

using MaybeProblem = std::optional<Problem>;

// wrong_type with the field's name in it, when that is what stopped the reader; otherwise nothing.
MaybeProblem wrong_type(const JsonReader& in, std::string_view field);

MaybeProblem take_text(JsonReader& in, std::string_view field, std::string& out);
MaybeProblem take_boolean(JsonReader& in, std::string_view field, bool& out);
// "10s". A bare number has no unit, and is refused.
MaybeProblem take_duration(JsonReader& in, std::string_view field, Milliseconds& out);
// For fields whose name ends in _ms: a whole number.
MaybeProblem take_milliseconds(JsonReader& in, std::string_view field, Milliseconds& out);
MaybeProblem take_time(JsonReader& in, std::string_view field, Time& out);
MaybeProblem take_id(JsonReader& in, std::string_view field, JobId& out);
MaybeProblem take_token(JsonReader& in, std::string_view field, std::uint64_t& out);
// One of these names.
MaybeProblem take_one_of(JsonReader& in, std::string_view field, std::span<const std::string_view> names,
                         std::size_t& index);
MaybeProblem take_number(JsonReader& in, std::string_view field, double& out);
MaybeProblem take_base64(JsonReader& in, std::string_view field, std::string& out);

MaybeProblem out_of_range(std::string_view field, std::string_view given, const std::string& least,
                          const std::string& most);
// out_of_range when it is not whole, or not within these.
template <class T>
MaybeProblem take_integer(JsonReader& in, std::string_view field, T least, T most, T& out) {
  const std::string_view given = in.number();
  if (!in.ok()) return wrong_type(in, field);
  T number = 0;
  const auto end = std::from_chars(given.data(), given.data() + given.size(), number);
  const bool whole = end.ec == std::errc() && end.ptr == given.data() + given.size();
  if (!whole || number < least || number > most) {
    return out_of_range(field, given, std::to_string(least), std::to_string(most));
  }
  out = number;
  return std::nullopt;
}

// Text as a whole number: nothing when it is anything else, or does not fit.
std::optional<std::int64_t> parse_whole(std::string_view text);

MaybeProblem unknown_field(std::string_view name, std::span<const std::string_view> known);
MaybeProblem duplicate_field(std::string_view name);
MaybeProblem conflicting_fields(std::string_view one, std::string_view other);
MaybeProblem missing_field(std::string_view name);
MaybeProblem too_many_items(std::string_view field, std::size_t most);
MaybeProblem problem_of(std::optional<core::JobProblem> problem);

bool is_blank(std::string_view body);
Problem empty_body(std::string_view wanted);

}  // namespace bide::wire
