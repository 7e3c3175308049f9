#include "wire/batch_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "wire/answer.h"
#include "wire/lease_json.h"
#include "wire/take_values.h"

namespace bide::wire {

namespace {

constexpr std::string_view kWanted = "a job, {\"kind\":\"send_email\"}, or a list of jobs";

Problem too_many() {
  return make_problem("too_many_items",
                      "the batch has more than " + std::to_string(kMostItems) + " items; send it in several requests");
}

// What is wrong with one item spares the others; what is wrong with the JSON does not.
void read_item(JsonReader& in, Time now, std::string_view callback_queue, BatchItem& item) {
  in.type();  // Past the white space.
  const JsonReader::Place place = in.place();
  item.problem = read_job(in, now, item.job, callback_queue);
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
  if (is_blank(body)) return empty_body(kWanted);
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

void write_enqueued(JsonWriter& out, const BatchItem& item, const BatchResult& result) {
  out.field("id", result.enqueued.id).field("existed", result.enqueued.existed);
  if (item.warnings.empty()) return;
  out.name("warnings").begin_array();
  for (const std::string& warning : item.warnings) out.string(warning);
  out.end_array();
}

void write_result(JsonWriter& out, std::size_t index, const BatchItem& item, const BatchResult& result) {
  out.begin_object().field("index", index);
  if (result.problem) {
    out.field("status", result.problem->status).name("problem");
    write(out, *result.problem);
  } else {
    out.field("status", result.enqueued.existed ? 200 : 201);
    write_enqueued(out, item, result);
  }
  out.end_object();
}

}  // namespace

std::string enqueued_json(const BatchItem& item, const BatchResult& result) {
  std::string text;
  JsonWriter out(text);
  out.begin_object();
  write_enqueued(out, item, result);
  out.end_object();
  return text;
}

std::string batch_results_json(const Batch& batch, const std::vector<BatchResult>& results) {
  std::string text;
  text.reserve(results.size() * 90 + 64);
  JsonWriter out(text);
  std::size_t failed = 0;
  out.begin_object().name("results").begin_array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    failed += results[i].problem ? 1 : 0;
    write_result(out, i, batch.items[i], results[i]);
  }
  out.end_array().field("enqueued", results.size() - failed).field("failed", failed).end_object();
  return text;
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
  std::string text;
  text.reserve(bytes);
  JsonWriter out(text);
  out.begin_object().name("jobs").begin_array();
  for (const Job& job : jobs) write(out, job);
  out.end_array().end_object();
  return text;
}

Result<std::vector<Result<Enqueued>>> read_batch_results(std::string_view body) {
  JsonReader in(body, kDeepestAnswer);
  std::vector<Result<Enqueued>> results;
  in.object();
  while (const auto name = in.field()) {
    if (*name != "results") {
      in.raw();
      continue;
    }
    in.array();
    while (in.element()) {
      Enqueued enqueued;
      std::optional<Problem> problem;
      in.object();
      while (const auto field = in.field()) {
        if (*field == "id") {
          enqueued.id = answer_id(in);
        } else if (*field == "existed") {
          enqueued.existed = in.boolean();
        } else if (*field == "problem") {
          problem = read_problem(in);
        } else {
          in.raw();
        }
      }
      if (problem) {
        results.emplace_back(error_of(*problem));
      } else {
        results.emplace_back(enqueued);
      }
    }
  }
  return checked(in, std::move(results));
}

}  // namespace bide::wire
