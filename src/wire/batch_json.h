// Jobs to be enqueued, one or many, and what became of each, as JSON.
//
//   request   {job}   or   [job, ...]   or   {"jobs":[job, ...]}   or, as application/x-ndjson, one job a line
//   answer    one:   {"id":"...","existed":false,"warnings":["due is in the past: the job runs now"]}, and "replaced":true
//                    when it took the place of the job with this id
//             many:  {"results":[{"index":0,"status":201,"id":"...","existed":false},
//                                {"index":1,"status":422,"problem":{"code":"missing_field",...}}],
//                     "enqueued":1,"failed":1}
//
// As x-ndjson the results come one a line, in order, without the sums.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/broker.h"
#include "wire/job_json.h"
#include "wire/problem.h"

namespace bide::wire {

inline constexpr std::string_view kNdjsonContentType = "application/x-ndjson";

struct BatchItem {
  Job job = {};
  JobLabels labels = {};
  std::string_view text = {};  // As it was sent.
  std::vector<std::string> warnings = {};
  std::optional<Problem> problem = {};
};

struct Batch {
  bool one = false;  // A single job, not a list of one.
  std::vector<BatchItem> items = {};
};

// Faults of the JSON, and a request that is no list of jobs, are problems of the whole; a job that is not valid is one
// of its item. `body` must outlive the batch.
std::optional<Problem> read_batch(std::string_view body, Time now, Batch& batch, std::string_view callback_queue = {});
std::optional<Problem> read_ndjson_batch(std::string_view body, Time now, Batch& batch,
                                         std::string_view callback_queue = {});

// Puts ids in place of the labels by which jobs of one batch name each other; `make_id` gives them where the job has none.
// A label that nobody has, or two, is a problem of its item. A job that names one with a problem has one too: it would wait
// for ever.
void resolve_labels(Batch& batch, Time now, const std::function<JobId()>& make_id);

// What became of one item.
struct BatchResult {
  Enqueued enqueued = {};
  std::optional<Problem> problem = {};
};

std::string enqueued_json(const BatchItem& item, const BatchResult& result);
std::string batch_results_json(const Batch& batch, const std::vector<BatchResult>& results);
std::string batch_results_ndjson(const Batch& batch, const std::vector<BatchResult>& results);

std::string batch_json(const std::vector<Job>& jobs);
// Of the answer to batch_json().
Result<std::vector<Result<Enqueued>>> read_batch_results(std::string_view body);

}  // namespace bide::wire
