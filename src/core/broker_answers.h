// What brokers answer: the status of one settlement, what a filter matches, and the size of a job that is shown.

#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "bide/inspector.h"
#include "bide/result.h"

namespace bide::core {

// What the answer to settle() says about one of the settlements. kUnconfirmed where the broker answered with too few.
inline Status status_at(const Result<std::vector<Status>>& statuses, std::size_t index) {
  if (!statuses) return statuses.error();
  if (index < statuses->size()) return (*statuses)[index];
  return Error{ErrorCode::kUnconfirmed, "the broker did not say what became of the settlement"};
}

// The lease is over: settled, or not ours any more. Otherwise settling can be tried again.
inline bool ends_lease(const Status& status) {
  return status || status.error().code == ErrorCode::kLeaseLost || status.error().code == ErrorCode::kNotFound;
}

// What the filter asks of a job itself, beside its queue and kind: headers, group and flow.
inline bool matches(const JobFilter& filter, const Job& job) {
  if (!filter.group.empty() && job.group != filter.group) return false;
  if (!filter.flow.is_nil() && job.flow != filter.flow) return false;
  return std::all_of(filter.headers.begin(), filter.headers.end(), [&](const auto& header) {
    return std::find(job.headers.begin(), job.headers.end(), header) != job.headers.end();
  });
}
// Whether the newest error has the text that a filter asks for.
inline bool has_error(const std::vector<AttemptError>& history, const std::string& text) {
  return !history.empty() && history.back().text.find(text) != std::string::npos;
}

// About how much memory it takes to show a job: what the pages of a list are measured by.
inline std::size_t shown_bytes(const JobInfo& info) {
  std::size_t bytes = 512 + info.job.body.size() + info.result.size() + info.note.size() + info.job.unique_key.size();
  for (const auto& [name, value] : info.job.headers) bytes += name.size() + value.size() + 8;
  for (const AttemptError& error : info.history) bytes += error.text.size() + 32;
  for (const Step& step : info.steps) bytes += step.name.size() + step.result.size();
  return bytes;
}

}  // namespace bide::core
