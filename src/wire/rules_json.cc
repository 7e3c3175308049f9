#include "wire/rules_json.h"

#include <array>
#include <utility>

#include "core/rate_text.h"
#include "wire/answer.h"

namespace bide::wire {

namespace {

// ---- Rates.

struct RateParts {
  RateLimit rate = {};
};

template <auto kTake>
MaybeProblem read_period(JsonReader& in, const Field<RateParts>& row, RateParts& parts) {
  return kTake(in, row.name, parts.rate.period);
}

enum RateGroup : int { kPeriod = 1 };

constexpr auto kRateRows = std::to_array<Field<RateParts>>({
    always<&RateParts::rate, &RateLimit::count>("count").at_least(1),
    row("period", ref("Duration"), read_period<take_duration>).one_of(kPeriod).says("1s when it is not given."),
    row("period_ms", kIntegerType, read_period<take_milliseconds>).one_of(kPeriod).at_least(1),
    field<&RateParts::rate, &RateLimit::burst>("burst").at_least(1).otherwise("1").says("After a pause so many at once."),
});

Problem invalid_rate(std::string_view field, const std::string& why) {
  return make_problem("invalid_rate", std::string(field) + ": " + why, std::string(field));
}

MaybeProblem take_rate(JsonReader& in, std::string_view field, RateLimit& out) {
  if (in.type() == JsonReader::Type::kNull) {
    in.null();
    out = {};
    return std::nullopt;
  }
  if (in.type() == JsonReader::Type::kObject) {
    RateParts parts;
    FieldReader<RateParts> fields(kRateRows);
    MaybeProblem problem = read_fields(in, fields, parts);
    if (!problem && in.ok()) problem = fields.find_missing();
    if (problem) {
      if (problem->code == "unknown_field") return problem;
      return invalid_rate(field, problem->detail);
    }
    if (parts.rate.period.count() <= 0) return invalid_rate(field, "the period must be longer than nothing");
    out = parts.rate;
    return std::nullopt;
  }
  if (in.type() == JsonReader::Type::kString) {
    const Result<RateLimit> rate = core::parse_rate(in.string());
    if (!in.ok()) return std::nullopt;
    if (!rate) return invalid_rate(field, rate.error().message);
    out = *rate;
    return std::nullopt;
  }
  const std::string given(in.raw());
  if (!in.ok()) return std::nullopt;
  return invalid_rate(field, "must be a text such as \"10/s\", an object such as {\"count\":10,\"period\":\"1s\"}, or null");
}

using RulesRow = Field<QueueRules>;

template <auto kMember>
constexpr RulesRow rate_row(std::string_view name) {
  return row<QueueRules, QueueRules>(
             name, ref("RateLimit"),
             [](JsonReader& in, const RulesRow& own, QueueRules& rules) { return take_rate(in, own.name, rules.*kMember); },
             [](JsonWriter& out, const RulesRow& own, const QueueRules& rules) {
               out.name(own.name);
               const RateLimit& value = rules.*kMember;
               value.count == 0 ? out.null() : out.string(core::format_rate(value));
             })
      .always();
}

// ---- Weights: an object, whose names are groups.

MaybeProblem read_weights(JsonReader& in, const RulesRow& row, QueueRules& rules) {
  in.object();
  while (const auto name = in.field()) {
    auto& [group, weight] = rules.weights.emplace_back(*name, 0);
    if (MaybeProblem problem = take_integer(in, row.name, 1, 100, weight)) return problem;
  }
  return wrong_type(in, row.name);
}

void write_weights(JsonWriter& out, const RulesRow& row, const QueueRules& rules) {
  out.name(row.name).begin_object();
  for (const auto& [group, weight] : rules.weights) out.any_name(group).number(weight);
  out.end_object();
}

// ---- Durations: as text, and as milliseconds, which answers have.

template <auto kMember>
constexpr RulesRow rules_duration(std::string_view name) {
  return row<QueueRules, QueueRules>(name, ref("Duration"), [](JsonReader& in, const RulesRow& own, QueueRules& rules) {
    return take_duration(in, own.name, rules.*kMember);
  });
}
template <auto kMember>
constexpr RulesRow rules_milliseconds(std::string_view name) {
  RulesRow made = always<kMember>(name).at_least(0);
  made.read = [](JsonReader& in, const RulesRow& own, QueueRules& rules) {
    return take_milliseconds(in, own.name, rules.*kMember);
  };
  return made;
}

enum RulesGroup : int { kAgeing = 1, kOldest };

constexpr auto kRulesRows = std::to_array<RulesRow>({
    always<&QueueRules::queue>("queue"),
    always<&QueueRules::at_once>("at_once").says("Jobs running. 0 is always: no limit."),
    rate_row<&QueueRules::rate>("rate").says("Jobs that start. A text, an object, or null: no limit."),
    always<&QueueRules::group_at_once>("group_at_once").says("Jobs of each group running."),
    rate_row<&QueueRules::group_rate>("group_rate").says("Jobs of each group that start."),
    always<&QueueRules::fair>("fair").says("Groups take turns."),
    row<QueueRules, QueueRules>("weights", {.type = "integer", .map = true}, read_weights, write_weights)
        .always()
        .says("Turns of a group, 1 to 100; others: 1."),
    rules_duration<&QueueRules::ageing>("ageing").one_of(kAgeing),
    rules_milliseconds<&QueueRules::ageing>("ageing_ms")
        .one_of(kAgeing)
        .says("Each such time of waiting counts as one priority higher."),
    always<&QueueRules::most_jobs>("most_jobs").says("Waiting. Beyond it enqueuing is refused; likewise below."),
    always<&QueueRules::most_bytes>("most_bytes").says("Of their bodies."),
    rules_duration<&QueueRules::oldest>("oldest").one_of(kOldest),
    rules_milliseconds<&QueueRules::oldest>("oldest_ms")
        .one_of(kOldest)
        .says("The longest waiting job that could run is so old."),
});

// In a request nothing has to be given.
constexpr auto kRulesRequestRows = [] {
  std::array<RulesRow, kRulesRows.size() - 1> rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = kRulesRows[i + 1];
    rows[i].required = false;
  }
  return rows;
}();

std::vector<FieldInfo> rules_fields() {
  std::vector<FieldInfo> fields;
  for (const RulesRow& row : kRulesRows) {
    if (row.write != nullptr) fields.push_back(row);
  }
  return fields;
}

}  // namespace

template <>
std::span<const RulesRow> rows_of<QueueRules>() {
  return kRulesRows;
}

std::optional<Problem> read_rules(std::string_view body, QueueRules& rules) {
  FieldReader<QueueRules> fields(kRulesRequestRows);
  return read_request(body, "the rules of the queue", fields, rules);
}

std::string rules_request_json(const QueueRules& rules) {
  return object_text([&](JsonWriter& out) { write_rows(out, std::span<const RulesRow>(kRulesRequestRows), rules); });
}

std::string rules_json(const QueueRules& rules) { return to_json(rules); }
std::string rules_list_json(const std::vector<QueueRules>& rules) { return list_json("rules", rules); }
Result<std::vector<QueueRules>> read_rules_list(std::string_view body) { return read_list<QueueRules>(body, "rules"); }

void add_rules_schemas(Schemas& schemas) {
  schemas.push_back({"RateObject", object_schema({}, kRateRows)});
  schemas.push_back({"RateLimit", any_of({R"({"type":["string","null"],"description":"10/s, 100/5m or 10/s,burst=20; null: no limit"})",
                                          type_schema(ref("RateObject"))})});
  schemas.push_back({"QueueRules", object_schema(rules_fields(), {.limits = false})});
  schemas.push_back({"QueueRulesRequest", object_schema({}, kRulesRequestRows)});
  schemas.push_back({"QueueRulesList", list_schema("rules", "QueueRules")});
}

}  // namespace bide::wire
