// What makes a job a request: a header, and an expiry that is its deadline.
//
//   bide-request: transient    or durable: it is to survive a restart of the broker

#pragma once

#include <string_view>

#include "bide/job.h"
#include "core/completion.h"

namespace bide::core {

inline constexpr std::string_view kRequestHeader = "bide-request";
inline constexpr std::string_view kTransientRequest = "transient";
inline constexpr std::string_view kDurableRequest = "durable";

inline constexpr Milliseconds kLongestRequest = std::chrono::hours(24);

// Somebody waits for its end, until it expires.
inline bool is_request(const Job& job) { return job.expires && !header_of(job, kRequestHeader).empty(); }

}  // namespace bide::core
