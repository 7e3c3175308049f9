// Verdict: what a receiver's answer means for the job, and for the host. Pure.
//
//   2xx            done; the answer is the result
//   202            accepted: the receiver settles later, with the lease it was given
//   410            dead
//   429, 503       failed, and not again before Retry-After
//   anything else  failed, redirects among them; again by the job's policy
//   called off     returned when it was not sent; unanswered when the receiver may have it
//   address busy   returned: it was not sent

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "http_client/http_request.h"
#include "server/callbacks/host_line.h"

namespace bide::server {

struct Verdict {
  enum class Kind : std::uint8_t { kDone, kAccepted, kDead, kFailed, kReturned, kUnanswered };

  Kind kind = Kind::kFailed;
  HostSign sign = HostSign::kNone;
  std::string error = {};             // Of all but kDone and kAccepted: one line.
  Milliseconds not_before{0};         // kFailed: what the receiver asked for, at most `longest`.
};

Verdict judge(const http_client::HttpAnswer& answer, Time now, Milliseconds longest);

// Also the label of the metric: "done", "accepted", "dead", "failed", "returned", "unanswered".
std::string_view to_string(Verdict::Kind kind);

}  // namespace bide::server
