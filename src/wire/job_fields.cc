#include "wire/job_fields.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/quote.h"
#include "wire/job_json.h"

namespace bide::wire {

// Friend of JobFields: one function for each field.
struct JobFieldTable {
  using Take = MaybeProblem (*)(JsonReader&, JobFields&, std::string_view);
  struct Field {
    std::string_view name;
    Take take;
  };

  template <ContentForm kForm>
  static MaybeProblem body(JsonReader& in, JobFields& fields, std::string_view name) {
    if (!fields.body_form_.empty()) return conflicting_fields(fields.body_form_, name);
    fields.body_form_ = name;
    if (!fields.content_type_given_) fields.job_.content_type = content_type_of(kForm);
    return take_content(in, name, kForm, fields.job_.body);
  }

  static MaybeProblem content_type(JsonReader& in, JobFields& fields, std::string_view name) {
    fields.content_type_given_ = true;
    return take_text(in, name, fields.job_.content_type);
  }

  static MaybeProblem headers(JsonReader& in, JobFields& fields, std::string_view name) {
    Headers& headers = fields.job_.headers;
    if (in.type() == JsonReader::Type::kArray) return pairs<false>(in, fields, name);
    in.object();
    while (const auto key = in.field()) {
      auto& [header, value] = headers.emplace_back(*key, std::string());
      if (in.type() != JsonReader::Type::kString) {
        in.raw();
        if (!in.ok()) return std::nullopt;
        return make_problem("wrong_type", "headers: the value of " + core::quoted(header) + " must be a string",
                            "headers");
      }
      value = in.string();
    }
    return in.ok() ? std::nullopt : wrong_type(in, name);
  }

  template <bool kBytes>
  static MaybeProblem pairs(JsonReader& in, JobFields& fields, std::string_view name) {
    in.array();
    while (in.element()) {
      auto& [header, value] = fields.job_.headers.emplace_back();
      const auto take = [&](std::string& out) -> MaybeProblem {
        if (!in.element()) {
          if (!in.ok()) return wrong_type(in, name);
          return make_problem("wrong_type", std::string(name) + ": each must be a pair, [\"name\",\"value\"]",
                              std::string(name));
        }
        return kBytes ? take_base64(in, name, out) : take_text(in, name, out);
      };
      in.array();
      if (MaybeProblem problem = take(header)) return problem;
      if (MaybeProblem problem = take(value)) return problem;
      if (in.element()) {
        return make_problem("wrong_type", std::string(name) + ": each must be a pair, [\"name\",\"value\"]",
                            std::string(name));
      }
    }
    return in.ok() ? std::nullopt : wrong_type(in, name);
  }

  static MaybeProblem priority(JsonReader& in, JobFields& fields, std::string_view name) {
    const std::string_view given = in.number();
    if (!in.ok()) return wrong_type(in, name);
    const auto whole = parse_whole(given);
    if (!whole || *whole < -1'000'000 || *whole > 1'000'000) {
      return make_problem(
          "invalid_priority",
          "priority " + std::string(given.substr(0, 64)) + " is out of range; allowed: -100 to 100, higher runs first",
          "priority");
    }
    fields.job_.priority = static_cast<int>(*whole);
    return std::nullopt;
  }

  static MaybeProblem due(JsonReader& in, JobFields& fields, std::string_view name) {
    if (fields.has("delay") || fields.has("delay_ms")) return conflicting_fields("delay", name);
    return take_time(in, name, fields.job_.due.emplace());
  }

  template <class Span, Span Job::*kMember, MaybeProblem (*kTake)(JsonReader&, std::string_view, Milliseconds&)>
  static MaybeProblem span(JsonReader& in, JobFields& fields, std::string_view name) {
    const bool is_delay = name.starts_with("delay");
    if (is_delay && fields.has("due")) return conflicting_fields("due", name);
    const std::string_view other = name == "delay"        ? "delay_ms"
                                   : name == "delay_ms"   ? "delay"
                                   : name == "time_limit" ? "time_limit_ms"
                                                          : "time_limit";
    if (fields.has(other)) return conflicting_fields(other, name);
    return kTake(in, name, fields.job_.*kMember);
  }

  static MaybeProblem reserved(JsonReader& in, JobFields& fields, std::string_view name) {
    const std::string_view header = name == "callback"  ? kCallbackHeader
                                    : name == "on_done" ? kOnDoneHeader
                                                        : kReplyQueueHeader;
    auto& [key, value] = fields.reserved_.emplace_back(header, std::string());
    return take_text(in, name, value);
  }

  template <std::string Job::*kMember>
  static MaybeProblem text(JsonReader& in, JobFields& fields, std::string_view name) {
    return take_text(in, name, fields.job_.*kMember);
  }

  static MaybeProblem id(JsonReader& in, JobFields& fields, std::string_view name) {
    return take_id(in, name, fields.job_.id);
  }
  static MaybeProblem unique_bytes(JsonReader& in, JobFields& fields, std::string_view name) {
    if (fields.has("unique_key")) return conflicting_fields("unique_key", name);
    return take_base64(in, name, fields.job_.unique_key);
  }
  static MaybeProblem expires(JsonReader& in, JobFields& fields, std::string_view name) {
    return take_time(in, name, fields.job_.expires.emplace());
  }
  static MaybeProblem retry(JsonReader& in, JobFields& fields, std::string_view name) {
    return take_retry(in, name, fields.job_.retry);
  }

  // The frequent ones first.
  static constexpr auto fields() {
    return std::to_array<Field>({
        {"id", &id},
        {"kind", &text<&Job::kind>},
        {"queue", &text<&Job::queue>},
        {"body", &body<ContentForm::kJson>},
        {"body_text", &body<ContentForm::kText>},
        {"body_base64", &body<ContentForm::kBase64>},
        {"content_type", &content_type},
        {"delay", &span<Milliseconds, &Job::delay, &take_duration>},
        {"delay_ms", &span<Milliseconds, &Job::delay, &take_milliseconds>},
        {"due", &due},
        {"headers", &headers},
        {"headers_base64", &pairs<true>},
        {"retry", &retry},
        {"time_limit", &span<Milliseconds, &Job::time_limit, &take_duration>},
        {"time_limit_ms", &span<Milliseconds, &Job::time_limit, &take_milliseconds>},
        {"priority", &priority},
        {"unique_key", &text<&Job::unique_key>},
        {"unique_key_base64", &unique_bytes},
        {"expires", &expires},
        {"callback", &reserved},
        {"on_done", &reserved},
        {"reply_queue", &reserved},
    });
  }
};

namespace {

constexpr auto kFields = JobFieldTable::fields();

constexpr auto kNames = [] {
  std::array<std::string_view, kFields.size()> names{};
  for (std::size_t i = 0; i < kFields.size(); ++i) names[i] = kFields[i].name;
  return names;
}();

std::size_t place_of(std::string_view name) {
  return static_cast<std::size_t>(std::find(kNames.begin(), kNames.end(), name) - kNames.begin());
}

}  // namespace

std::span<const std::string_view> job_field_names() { return kNames; }

bool JobFields::has(std::string_view name) const { return (seen_ >> place_of(name) & 1) != 0; }

MaybeProblem JobFields::take(JsonReader& in, std::string_view name, bool& known) {
  const std::size_t place = place_of(name);
  known = place < kFields.size();
  if (!known) return std::nullopt;
  const std::uint32_t bit = 1u << place;
  if ((seen_ & bit) != 0) return duplicate_field(name);
  seen_ |= bit;
  // The name of the table, because the reader's own lives only until the next string.
  return kFields[place].take(in, *this, kFields[place].name);
}

MaybeProblem JobFields::finish() {
  for (auto& [header, value] : reserved_) {
    if (!header_of(job_, header).empty()) {
      return make_problem("conflicting_fields",
                          "the header " + header + " is given, and the field that sets it; give one of them",
                          "headers");
    }
    if (value.empty()) continue;
    job_.headers.emplace_back(std::move(header), std::move(value));
  }
  return std::nullopt;
}

MaybeProblem take_content(JsonReader& in, std::string_view field, ContentForm form, std::string& out) {
  switch (form) {
    case ContentForm::kJson:
      out = in.raw();
      return std::nullopt;
    case ContentForm::kText:
      return take_text(in, field, out);
    case ContentForm::kBase64:
      return take_base64(in, field, out);
  }
  return std::nullopt;
}

std::string_view content_type_of(ContentForm form) {
  switch (form) {
    case ContentForm::kJson:
      return kJsonContentType;
    case ContentForm::kText:
      return kTextContentType;
    case ContentForm::kBase64:
      break;
  }
  return {};
}

}  // namespace bide::wire
