// DeliveryResult: what a receiver's answer means for the job and for its host.
//
//   2xx            done; the answer is the result
//   202            accepted: the receiver settles later, with the lease it was given
//   410            dead
//   429, 503       failed; not retried before Retry-After
//   anything else  failed, redirects too; retried by the job's policy
//   cancelled      returned when it was not sent; unanswered when the receiver may have it
//   address busy   returned: it was not sent

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "http_client/http_request.h"
#include "server/callbacks/host_table.h"

namespace bide::server {

struct DeliveryResult {
  enum class Kind : std::uint8_t { kDone, kAccepted, kDead, kFailed, kReturned, kUnanswered };

  Kind kind = Kind::kFailed;
  HostHealth health = HostHealth::kUnknown;
  std::string error = {};      // Of all but kDone and kAccepted: one line.
  Milliseconds not_before{0};  // kFailed: Retry-After, at most `longest`.
};

DeliveryResult result_of(const http_client::HttpAnswer& answer, Time now, Milliseconds longest);

// Also the label of the metric: "done", "accepted", "dead", "failed", "returned", "unanswered".
std::string_view to_string(DeliveryResult::Kind kind);

// Retry-After, in seconds or as a date (RFC 9110). Nothing when it is neither. A date that has passed is 0; at most
// Limits::kDelay.
std::optional<Milliseconds> parse_retry_after(std::string_view text, Time now);

// The three forms of HTTP, all in GMT:
//   Sun, 06 Nov 1994 08:49:37 GMT     Sunday, 06-Nov-94 08:49:37 GMT     Sun Nov  6 08:49:37 1994
// A year of two digits is the one that is not more than 50 years ahead of `now`.
std::optional<Time> parse_http_date(std::string_view text, Time now);

}  // namespace bide::server
