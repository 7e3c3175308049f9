#include "wire/batch_json.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/did_you_mean.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "wire/answer.h"
#include "wire/fields.h"
#include "wire/lease_json.h"

namespace bide::wire {

namespace {

constexpr std::string_view kWantedJobs = "a job, {\"kind\":\"send_email\"}, or a list of jobs";

Problem too_many() {
  return make_problem("too_many_items",
                      "the batch has more than " + std::to_string(kMostItems) + " items; send it in several requests");
}

// What is wrong with one item spares the others; what is wrong with the JSON does not.
void read_item(JsonReader& in, Time now, std::string_view callback_queue, BatchItem& item) {
  in.type();  // Past the white space.
  const JsonReader::Place place = in.place();
  item.problem = read_job(in, now, item.job, callback_queue, &item.labels);
  if (item.problem || !in.ok()) {
    if (!item.problem) item.problem = problem_of(in.fault());
    in.go_back(place);
    item.text = in.raw();
    return;
  }
  item.text = in.since(place);
  if (item.job.due || item.job.expires) item.warnings = warnings_of(item.job, now);
}

void read_items(JsonReader& in, Time now, std::string_view callback_queue, Batch& batch, bool& too_long) {
  in.array();
  while (in.element()) {
    if (batch.items.size() == kMostItems) {
      too_long = true;
      return;
    }
    read_item(in, now, callback_queue, batch.items.emplace_back());
  }
}

bool is_list(JsonReader in) {
  in.object();
  const auto name = in.field();
  return name && *name == "jobs";
}

}  // namespace

std::optional<Problem> read_batch(std::string_view body, Time now, Batch& batch, std::string_view callback_queue) {
  if (is_blank(body)) return empty_body(kWantedJobs);
  JsonReader in(body);
  bool too_long = false;
  if (in.type() == JsonReader::Type::kArray) {
    read_items(in, now, callback_queue, batch, too_long);
  } else if (is_list(in)) {
    in.object();
    in.field();
    read_items(in, now, callback_queue, batch, too_long);
    if (in.ok() && !too_long) {
      if (const auto name = in.field()) return unknown_field(*name, std::to_array<std::string_view>({"jobs"}));
    }
  } else {
    batch.one = true;
    read_item(in, now, callback_queue, batch.items.emplace_back());
  }
  if (too_long) return too_many();
  in.end();
  if (in.ok()) return std::nullopt;
  if (in.fault().code == "wrong_type") return make_problem("wrong_type", "jobs: " + in.fault().text, "jobs");
  return problem_of(in.fault());
}

std::optional<Problem> read_ndjson_batch(std::string_view body, Time now, Batch& batch,
                                         std::string_view callback_queue) {
  if (is_blank(body)) return empty_body("one job a line");
  std::size_t at = 0;
  while (at < body.size()) {
    const std::size_t end = std::min(body.find('\n', at), body.size());
    const std::string_view line = body.substr(at, end - at);
    if (!is_blank(line)) {
      if (batch.items.size() == kMostItems) return too_many();
      BatchItem& item = batch.items.emplace_back();
      JsonReader in(line);
      read_item(in, now, callback_queue, item);
      in.end();
      if (!in.ok()) {
        item.problem = problem_of(in.fault());
        *item.problem->offset += at;
        item.problem->detail = "line " + std::to_string(batch.items.size()) + ": " + item.problem->detail;
      }
      if (item.text.empty()) item.text = line;
    }
    at = end + 1;
  }
  return std::nullopt;
}

namespace {

// The labels of a batch, and who has them.
class LabelledItems {
 public:
  explicit LabelledItems(Batch& batch) : items_(batch.items), waiting_(batch.items.size()) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      BatchItem& item = items_[i];
      if (item.labels.label.empty()) continue;
      if (!places_.emplace(item.labels.label, i).second && !item.problem) {
        item.problem = make_problem("invalid_label",
                                    "label " + core::quoted(item.labels.label) + " is given to two jobs; a label is for one",
                                    "label");
      }
    }
  }

  void resolve(Time now, const std::function<JobId()>& make_id) {
    for (BatchItem& item : items_) {
      if (!item.labels.label.empty() && item.job.id.is_nil()) item.job.id = make_id();
    }
    for (std::size_t i = 0; i < items_.size(); ++i) {
      BatchItem& item = items_[i];
      if (item.problem) continue;
      for (const std::string& label : item.labels.after) {
        if (const auto place = find(i, "after", label)) item.job.after.push_back(items_[*place].job.id);
      }
      if (!item.labels.flow.empty()) {
        if (const auto place = find(i, "flow", item.labels.flow)) item.job.flow = items_[*place].job.id;
      }
      // Its ids are all there only now.
      if (!item.problem && !item.labels.after.empty()) item.problem = problem_of(core::find_problem(item.job, now));
    }
    refuse_dependents();
  }

 private:
  std::optional<std::size_t> find(std::size_t i, std::string_view field, const std::string& label) {
    const auto found = places_.find(label);
    if (found != places_.end()) {
      waiting_[found->second].push_back(i);
      return found->second;
    }
    std::vector<std::string_view> known;
    for (const auto& [name, place] : places_) known.push_back(name);
    items_[i].problem = make_problem("invalid_label",
                                     std::string(field) + ": no job of this request has the label " + core::quoted(label) +
                                         core::did_you_mean(label, known),
                                     std::string(field));
    return std::nullopt;
  }

  void refuse_dependents() {
    std::vector<std::size_t> bad;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].problem) bad.push_back(i);
    }
    while (!bad.empty()) {
      const std::size_t named = bad.back();
      bad.pop_back();
      for (const std::size_t i : waiting_[named]) {
        if (items_[i].problem) continue;
        items_[i].problem = make_problem(
            "aborted", "the job with the label " + core::quoted(items_[named].labels.label) + " is not valid", "after");
        bad.push_back(i);
      }
    }
  }

  std::vector<BatchItem>& items_;
  std::vector<std::vector<std::size_t>> waiting_;  // Who names each item.
  std::map<std::string_view, std::size_t> places_;
};

}  // namespace

void resolve_labels(Batch& batch, Time now, const std::function<JobId()>& make_id) {
  const auto has_labels = [](const BatchItem& item) { return !item.labels.empty(); };
  if (std::any_of(batch.items.begin(), batch.items.end(), has_labels)) LabelledItems(batch).resolve(now, make_id);
}

namespace {

// What became of one item, as whoever asked sees it.
struct Answered {
  Enqueued enqueued = {};
  std::optional<Problem> problem = {};
};

constexpr auto kAnsweredRows = std::to_array<Field<Answered>>({
    field<&Answered::enqueued, &Enqueued::id>("id"),
    field<&Answered::enqueued, &Enqueued::existed>("existed").says(
        "A job with this id was there already; nothing was written."),
    field<&Answered::enqueued, &Enqueued::replaced>("replaced").says(
        "It took the place of the job with this id, which held its unique key."),
    row<Answered, Answered>("problem", ref("Problem"),
                            [](JsonReader& in, const auto&, Answered& answered) -> MaybeProblem {
                              answered.problem = read_problem(in);
                              return std::nullopt;
                            }),
});

void write_enqueued(JsonWriter& out, const BatchItem& item, const BatchResult& result) {
  out.field("id", result.enqueued.id).field("existed", result.enqueued.existed);
  if (result.enqueued.replaced) out.field("replaced", true);
  if (item.warnings.empty()) return;
  out.name("warnings").begin_array();
  for (const std::string& warning : item.warnings) out.string(warning);
  out.end_array();
}

void write_result(JsonWriter& out, std::size_t index, const BatchItem& item, const BatchResult& result) {
  out.begin_object().field("index", index);
  write_status(out, result.problem, result.enqueued.existed || result.enqueued.replaced ? 200 : 201);
  if (!result.problem) write_enqueued(out, item, result);
  out.end_object();
}

}  // namespace

template <>
std::span<const Field<Answered>> rows_of<Answered>() {
  return kAnsweredRows;
}

std::string enqueued_json(const BatchItem& item, const BatchResult& result) {
  return object_text([&](JsonWriter& out) { write_enqueued(out, item, result); });
}

std::string batch_results_json(const Batch& batch, const std::vector<BatchResult>& results) {
  const auto write_all = [&](JsonWriter& out) {
    std::size_t failed = 0;
    out.name("results").begin_array();
    for (std::size_t i = 0; i < results.size(); ++i) {
      failed += results[i].problem ? 1 : 0;
      write_result(out, i, batch.items[i], results[i]);
    }
    out.end_array().field("enqueued", results.size() - failed).field("failed", failed);
  };
  return object_text(write_all, results.size() * 90 + 64);
}

std::string batch_results_ndjson(const Batch& batch, const std::vector<BatchResult>& results) {
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    JsonWriter out(text);
    write_result(out, i, batch.items[i], results[i]);
    text += '\n';
  }
  return text;
}

std::string batch_json(const std::vector<Job>& jobs) {
  std::size_t bytes = 16;
  for (const Job& job : jobs) bytes += job.body.size() + 160;
  const auto write_all = [&](JsonWriter& out) {
    out.name("jobs").begin_array();
    for (const Job& job : jobs) write(out, job);
    out.end_array();
  };
  return object_text(write_all, bytes);
}

Result<std::vector<Result<Enqueued>>> read_batch_results(std::string_view body) {
  return read_list<Result<Enqueued>>(body, "results", [](JsonReader& in) -> Result<Enqueued> {
    Answered answered;
    read_answer(in, answered);
    if (answered.problem) return error_of(*answered.problem);
    return answered.enqueued;
  });
}

void add_batch_schemas(Schemas& schemas) {
  const std::string one = type_schema(ref("Job"));
  const std::string array = type_schema(list_of(ref("Job")), kMostItems);
  schemas.push_back({"EnqueueRequest", any_of({one, array, list_schema("jobs", "Job", kMostItems)})});
  const auto index = std::to_array<Field<>>({
      shape("index", kIntegerType).always(),
      shape("status", kIntegerType).always().says("201, 200 when it existed or replaced another, or that of the problem."),
  });
  const auto warnings = std::to_array<Field<>>({shape("warnings", list_of(kStringType))});
  schemas.push_back(
      {"Enqueued", object_schema({.required = {"id", "existed"}}, std::span(kAnsweredRows).first(3), warnings)});
  schemas.push_back({"EnqueueResult", object_schema({}, index, kAnsweredRows, warnings)});
  schemas.push_back({"EnqueueResults", object_schema({}, std::to_array<Field<>>({
                                                             shape("results", list_of(ref("EnqueueResult"))).always(),
                                                             shape("enqueued", kIntegerType).always(),
                                                             shape("failed", kIntegerType).always(),
                                                         }))});
}

}  // namespace bide::wire
