#include "wire/take_values.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/did_you_mean.h"
#include "core/duration.h"
#include "core/number_text.h"
#include "core/quote.h"
#include "core/text.h"
#include "core/time_text.h"

namespace bide::wire {

using core::quoted;
using Type = JsonReader::Type;

namespace {

std::string joined(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

}  // namespace

MaybeProblem wrong_type(const JsonReader& in, std::string_view field) {
  if (in.ok() || (in.fault().code != "wrong_type" && in.fault().code != "expected_object")) return std::nullopt;
  Problem problem = make_problem("wrong_type", std::string(field) + ": " + in.fault().text, std::string(field));
  problem.offset = in.fault().offset;
  return problem;
}

MaybeProblem take_text(JsonReader& in, std::string_view field, std::string& out) {
  out = in.string();
  return in.ok() ? std::nullopt : wrong_type(in, field);
}

MaybeProblem take_boolean(JsonReader& in, std::string_view field, bool& out) {
  out = in.boolean();
  return in.ok() ? std::nullopt : wrong_type(in, field);
}

MaybeProblem take_duration(JsonReader& in, std::string_view field, Milliseconds& out) {
  if (in.type() != Type::kString) {
    const std::string_view given = in.raw();
    if (!in.ok()) return std::nullopt;
    return make_problem(
        "invalid_duration",
        std::string(field) + ": invalid duration " + quoted(given) +
            ": it must be text with a unit, such as \"250ms\", \"10s\" or \"1h30m\" (units: ms, s, m, h, "
            "d, w); or give whole milliseconds as " +
            std::string(field) + "_ms",
        std::string(field));
  }
  const auto parsed = core::parse_duration(in.string());
  if (!in.ok()) return std::nullopt;
  if (!parsed)
    return make_problem("invalid_duration", std::string(field) + ": " + parsed.error().message, std::string(field));
  out = *parsed;
  return std::nullopt;
}

MaybeProblem take_milliseconds(JsonReader& in, std::string_view field, Milliseconds& out) {
  const std::string_view given = in.raw();
  if (!in.ok()) return std::nullopt;
  // More is too far away anyway, and sums with it cannot overflow.
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const auto whole = parse_whole(given);
  if (!whole || *whole < 0 || *whole > kMost) {
    return make_problem("invalid_duration",
                        std::string(field) + ": invalid duration " + quoted(given) +
                            "; allowed: a whole number of milliseconds, not negative",
                        std::string(field));
  }
  out = Milliseconds(*whole);
  return std::nullopt;
}

MaybeProblem take_time(JsonReader& in, std::string_view field, Time& out) {
  if (in.type() != Type::kString) {
    const std::string_view given = in.raw();
    if (!in.ok()) return std::nullopt;
    return make_problem(
        "invalid_time",
        std::string(field) + ": invalid time " + quoted(given) + ": it must be text, such as \"2026-01-02T03:04:05Z\"",
        std::string(field));
  }
  const auto parsed = core::parse_time(in.string());
  if (!in.ok()) return std::nullopt;
  if (!parsed)
    return make_problem("invalid_time", std::string(field) + ": " + parsed.error().message, std::string(field));
  out = *parsed;
  return std::nullopt;
}

MaybeProblem take_id(JsonReader& in, std::string_view field, JobId& out) {
  const std::string_view given = in.string();
  if (!in.ok()) return wrong_type(in, field);
  const auto id = JobId::parse(given);
  if (!id) return make_problem("invalid_id", std::string(field) + ": " + id.error().message, std::string(field));
  if (id->is_nil()) {
    return make_problem("invalid_id", std::string(field) + ": all zeros means no id; give another UUID",
                        std::string(field));
  }
  out = *id;
  return std::nullopt;
}

MaybeProblem take_token(JsonReader& in, std::string_view field, std::uint64_t& out) {
  const std::string_view given = in.type() == Type::kNumber ? in.number() : in.string();
  if (!in.ok()) return wrong_type(in, field);
  const auto end = std::from_chars(given.data(), given.data() + given.size(), out);
  if (end.ec == std::errc() && end.ptr == given.data() + given.size()) return std::nullopt;
  return make_problem(
      "invalid_token",
      std::string(field) + ": invalid token " + quoted(given) + "; give the one that came with the lease",
      std::string(field));
}

MaybeProblem take_one_of(JsonReader& in, std::string_view field, std::span<const std::string_view> names,
                         std::size_t& index) {
  const std::string_view given = in.string();
  if (!in.ok()) return wrong_type(in, field);
  const auto found = std::find(names.begin(), names.end(), given);
  index = static_cast<std::size_t>(found - names.begin());
  if (found != names.end()) return std::nullopt;
  return make_problem("invalid_argument",
                      "unknown " + std::string(field) + " " + quoted(given) + "; allowed: " + joined(names) +
                          core::did_you_mean(given, names),
                      std::string(field));
}

MaybeProblem out_of_range(std::string_view field, std::string_view given, const std::string& least,
                          const std::string& most) {
  return make_problem("out_of_range",
                      std::string(field) + " is " + std::string(given.substr(0, 64)) +
                          "; allowed: a whole number from " + least + " to " + most,
                      std::string(field));
}

MaybeProblem take_number(JsonReader& in, std::string_view field, double& out) {
  const std::string_view given = in.number();
  if (!in.ok()) return wrong_type(in, field);
  if (const auto number = core::parse_number(given)) {
    out = *number;
    return std::nullopt;
  }
  return make_problem("out_of_range",
                      std::string(field) + " is " + std::string(given.substr(0, 64)) + ", which is too large",
                      std::string(field));
}

MaybeProblem take_base64(JsonReader& in, std::string_view field, std::string& out) {
  const std::string_view given = in.string();
  if (!in.ok()) return wrong_type(in, field);
  auto bytes = core::from_base64(given);
  if (!bytes) {
    return make_problem("invalid_base64",
                        std::string(field) + ": " + quoted(given) + " is not base64 (RFC 4648, with padding)",
                        std::string(field));
  }
  out = std::move(*bytes);
  return std::nullopt;
}

std::optional<std::int64_t> parse_whole(std::string_view text) {
  std::int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

MaybeProblem unknown_field(std::string_view name, std::span<const std::string_view> known) {
  const std::string near = core::did_you_mean(name, known);
  return make_problem("unknown_field",
                      "unknown field " + quoted(name) + (near.empty() ? "; known are " + joined(known) : near),
                      std::string(name.substr(0, 64)));
}

MaybeProblem duplicate_field(std::string_view name) {
  return make_problem("duplicate_field", "the field " + quoted(name) + " is given twice; give it once",
                      std::string(name));
}

MaybeProblem conflicting_fields(std::string_view one, std::string_view other) {
  return make_problem("conflicting_fields",
                      "both " + std::string(one) + " and " + std::string(other) + " are given; give one of them",
                      std::string(other));
}

MaybeProblem missing_field(std::string_view name) {
  return make_problem("missing_field", std::string(name) + " is missing", std::string(name));
}

MaybeProblem too_many_items(std::string_view field, std::size_t most) {
  return make_problem("too_many_items", std::string(field) + ": at most " + std::to_string(most) + " at a time",
                      std::string(field));
}

MaybeProblem problem_of(std::optional<core::JobProblem> problem) {
  if (!problem) return std::nullopt;
  return make_problem(problem->code, std::move(problem->message), std::string(problem->field));
}

bool is_blank(std::string_view body) { return body.find_first_not_of(" \t\r\n") == std::string_view::npos; }

Problem empty_body(std::string_view wanted) {
  return make_problem("empty_body", "the request has no body; send " + std::string(wanted));
}

}  // namespace bide::wire
