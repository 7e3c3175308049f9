#include "wire/event_json.h"

#include <array>
#include <span>

#include "core/topics.h"
#include "wire/answer.h"
#include "wire/fields.h"

namespace bide::wire {

namespace {

constexpr auto kBindingRows = std::to_array<Field<Binding>>({
    always<&Binding::queue>("queue"),
    always<&Binding::patterns>("patterns").at_most(core::kMostPatterns).says("Of topics; none: not bound."),
    field<&Binding::most>("most").says("With so many jobs waiting it gets no more events. 0: no limit."),
    field<&Binding::keep>("keep_ms").at_least(0).says("An event that was not begun by then is dead. 0: no limit."),
    field<&Binding::idle>("idle_ms").at_least(0).says("Removed when nobody has taken from it for so long. 0: never."),
});

constexpr auto kPublishRows = std::to_array<Field<PublishResult>>({
    field<&PublishResult::published, &Published::id>("id").says("Of the event."),
    field<&PublishResult::published, &Published::groups>("groups").says("Queues that have it."),
    field<&PublishResult::published, &Published::full>("full").says("Queues that are bound, full, and do not have it."),
    row<PublishResult, PublishResult>("problem", ref("Problem"),
                                      [](JsonReader& in, const auto&, PublishResult& result) -> MaybeProblem {
                                        result.problem = read_problem(in);
                                        return std::nullopt;
                                      }),
});

}  // namespace

template <>
std::span<const Field<Binding>> rows_of<Binding>() {
  return kBindingRows;
}
template <>
std::span<const Field<PublishResult>> rows_of<PublishResult>() {
  return kPublishRows;
}

std::string published_json(const Published& published) {
  return object_text([&](JsonWriter& out) { write_rows(out, rows_of<PublishResult>(), PublishResult{published, {}}); });
}

std::string publish_results_json(const std::vector<PublishResult>& results) {
  return object_text([&](JsonWriter& out) {
    out.name("results").begin_array();
    for (std::size_t i = 0; i < results.size(); ++i) {
      out.begin_object().field("index", i);
      write_status(out, results[i].problem);
      if (!results[i].problem) write_rows(out, rows_of<PublishResult>(), results[i]);
      out.end_object();
    }
    out.end_array();
  });
}

Result<std::vector<Result<Published>>> read_publish_results(std::string_view body) {
  return read_list<Result<Published>>(body, "results", [](JsonReader& in) -> Result<Published> {
    PublishResult result;
    read_answer(in, result);
    if (result.problem) return error_of(*result.problem);
    return result.published;
  });
}

std::optional<Problem> read_binding(std::string_view body, Binding& binding) {
  FieldReader<Binding> fields(rows_of<Binding>().subspan(1));
  return read_request(body, "a binding", fields, binding);
}

std::string binding_request_json(const Binding& binding) {
  return object_text([&](JsonWriter& out) { write_rows(out, rows_of<Binding>().subspan(1), binding); });
}

std::string binding_json(const Binding& binding) { return to_json(binding); }
std::string bindings_json(const std::vector<Binding>& bindings) { return list_json("bindings", bindings); }
Result<std::vector<Binding>> read_bindings(std::string_view body) { return read_list<Binding>(body, "bindings"); }

void add_event_schemas(Schemas& schemas) {
  schemas.push_back({"Binding", object_schema({}, kBindingRows)});
  schemas.push_back({"BindingRequest", object_schema({}, rows_of<Binding>().subspan(1))});
  schemas.push_back({"Bindings", list_schema("bindings", "Binding")});
  const auto index = std::to_array<Field<>>({
      shape("index", kIntegerType).always(),
      shape("status", kIntegerType).always().says("200, or that of the problem."),
  });
  schemas.push_back({"Published", object_schema({.required = {"id", "groups", "full"}}, std::span(kPublishRows).first(3))});
  schemas.push_back({"PublishResult", object_schema({}, index, kPublishRows)});
  schemas.push_back({"PublishResults", list_schema("results", "PublishResult")});
}

}  // namespace bide::wire
