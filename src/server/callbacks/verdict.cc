#include "server/callbacks/verdict.h"

#include <algorithm>

#include "core/duration.h"
#include "core/quote.h"
#include "server/callbacks/own_listeners.h"
#include "server/callbacks/retry_after.h"

namespace bide::server {

namespace {

using http_client::HttpAnswer;
using http_client::HttpFailure;

constexpr std::size_t kShownAnswer = 200;

// The beginning of what it said, for whoever reads the job's errors.
std::string said(const HttpAnswer& answer) {
  if (answer.body.empty()) return {};
  const bool cut = answer.body.size() > kShownAnswer;
  return ": " + core::printable(std::string_view(answer.body).substr(0, kShownAnswer)) + (cut ? "..." : "");
}

Verdict judge_failure(const HttpAnswer& answer) {
  switch (answer.failure) {
    case HttpFailure::kInvalid: return {Verdict::Kind::kDead, HostSign::kNone, answer.error, {}};
    case HttpFailure::kAddressRefused: {
      // What a name stands for may change, but nobody means the server itself.
      const bool own = answer.error.find(kOwnListenerRule) != std::string::npos;
      return {own ? Verdict::Kind::kDead : Verdict::Kind::kFailed, HostSign::kNone, answer.error, {}};
    }
    case HttpFailure::kAddressBusy: return {Verdict::Kind::kReturned, HostSign::kNone, answer.error, {}};
    case HttpFailure::kTooLarge: return {Verdict::Kind::kFailed, HostSign::kAnswers, answer.error, {}};
    case HttpFailure::kCancelled:
      if (!answer.sent) return {Verdict::Kind::kReturned, HostSign::kNone, answer.error, {}};
      return {Verdict::Kind::kUnanswered, HostSign::kNone, "the server stopped before the receiver answered", {}};
    default: return {Verdict::Kind::kFailed, HostSign::kFailing, answer.error, {}};
  }
}

}  // namespace

Verdict judge(const HttpAnswer& answer, Time now, Milliseconds longest) {
  if (answer.failure != HttpFailure::kNone) return judge_failure(answer);
  const int status = answer.status;
  const std::string answered = "the receiver answered " + std::to_string(status);
  if (status == 202) return {Verdict::Kind::kAccepted, HostSign::kWell, {}, {}};
  if (status >= 200 && status < 300) return {Verdict::Kind::kDone, HostSign::kWell, {}, {}};
  if (status >= 300 && status < 400) {
    return {Verdict::Kind::kFailed, HostSign::kAnswers, answered + ": redirects are not followed", {}};
  }
  if (status == 410) return {Verdict::Kind::kDead, HostSign::kAnswers, answered + " (gone)" + said(answer), {}};
  if (status == 429 || status == 503) {
    const auto asked = parse_retry_after(answer.field("retry-after"), now);
    const HostSign sign = status == 429 || asked ? HostSign::kBusy : HostSign::kFailing;
    if (!asked) return {Verdict::Kind::kFailed, sign, answered + said(answer), {}};
    const Milliseconds wait = std::min(*asked, longest);
    return {Verdict::Kind::kFailed, sign,
            answered + ", to be tried again in " + core::rough_duration(wait) + said(answer), wait};
  }
  return {Verdict::Kind::kFailed, status >= 500 ? HostSign::kFailing : HostSign::kAnswers, answered + said(answer), {}};
}

std::string_view to_string(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::kDone: return "done";
    case Verdict::Kind::kAccepted: return "accepted";
    case Verdict::Kind::kDead: return "dead";
    case Verdict::Kind::kFailed: return "failed";
    case Verdict::Kind::kReturned: return "returned";
    case Verdict::Kind::kUnanswered: return "unanswered";
  }
  return "failed";
}

}  // namespace bide::server
