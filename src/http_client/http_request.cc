#include "http_client/http_request.h"

namespace bide::http_client {

std::string_view to_string(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::kNone:
      return "none";
    case HttpFailure::kInvalid:
      return "invalid";
    case HttpFailure::kAddressRefused:
      return "address_refused";
    case HttpFailure::kNotResolved:
      return "not_resolved";
    case HttpFailure::kNotConnected:
      return "not_connected";
    case HttpFailure::kTls:
      return "tls";
    case HttpFailure::kTimedOut:
      return "timed_out";
    case HttpFailure::kAddressBusy:
      return "address_busy";
    case HttpFailure::kTooLarge:
      return "too_large";
    case HttpFailure::kBroken:
      return "broken";
    case HttpFailure::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string_view HttpAnswer::field(std::string_view lower_case_name) const {
  for (const auto& [name, value] : fields) {
    if (name == lower_case_name) return value;
  }
  return {};
}

}  // namespace bide::http_client
