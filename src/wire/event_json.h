// Events and bindings, as JSON. An event is a job (wire/job_json.h) whose kind is its topic.
//
//   publish    {event}   or   [event, ...]   or   {"jobs":[event, ...]}
//   answer     one:   {"id":"...","groups":2,"full":0}
//              many:  {"results":[{"index":0,"status":200,"id":"...","groups":2,"full":0},
//                                 {"index":1,"status":422,"problem":{...}}]}
//   binding    {"queue":"billing","patterns":["order.*"],"most":0,"keep_ms":0,"idle_ms":0}

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "wire/fields.h"
#include "wire/problem.h"

namespace bide::wire {

template <>
std::span<const Field<Binding>> rows_of<Binding>();

// What became of one event.
struct PublishResult {
  Published published = {};
  std::optional<Problem> problem = {};
};

std::string published_json(const Published& published);
std::string publish_results_json(const std::vector<PublishResult>& results);
Result<std::vector<Result<Published>>> read_publish_results(std::string_view body);

// The queue is named elsewhere.
std::optional<Problem> read_binding(std::string_view body, Binding& binding);
std::string binding_request_json(const Binding& binding);
std::string binding_json(const Binding& binding);
std::string bindings_json(const std::vector<Binding>& bindings);
Result<std::vector<Binding>> read_bindings(std::string_view body);

}  // namespace bide::wire
