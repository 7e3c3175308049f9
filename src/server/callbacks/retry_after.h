// Retry-After: how long a receiver asks to be left alone, in seconds or until a date (RFC 9110).

#pragma once

#include <optional>
#include <string_view>

#include "bide/job.h"

namespace bide::server {

// Nothing when it is neither. A date that has passed is 0; a wait beyond Limits::kDelay is that.
std::optional<Milliseconds> parse_retry_after(std::string_view text, Time now);

// The three forms that HTTP knows, all in GMT:
//   Sun, 06 Nov 1994 08:49:37 GMT     Sunday, 06-Nov-94 08:49:37 GMT     Sun Nov  6 08:49:37 1994
// Of two digits, the year is the one that is not more than 50 years ahead of `now`.
std::optional<Time> parse_http_date(std::string_view text, Time now);

}  // namespace bide::server
