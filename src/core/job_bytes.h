// About how much memory it takes to show a job: what the pages of a list are measured by.

#pragma once

#include <cstddef>

#include "bide/inspector.h"

namespace bide::core {

inline std::size_t shown_bytes(const JobInfo& info) {
  std::size_t bytes = 512 + info.job.body.size() + info.result.size() + info.note.size() + info.job.unique_key.size();
  for (const auto& [name, value] : info.job.headers) bytes += name.size() + value.size() + 8;
  for (const AttemptError& error : info.history) bytes += error.text.size() + 32;
  return bytes;
}

}  // namespace bide::core
