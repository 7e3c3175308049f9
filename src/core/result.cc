#include "bide/result.h"

namespace bide {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kAlreadyExists:
      return "already_exists";
    case ErrorCode::kLeaseLost:
      return "lease_lost";
    case ErrorCode::kWrongState:
      return "wrong_state";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kUnconfirmed:
      return "unconfirmed";
    case ErrorCode::kOverloaded:
      return "overloaded";
    case ErrorCode::kDiskFull:
      return "disk_full";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kPermissionDenied:
      return "permission_denied";
    case ErrorCode::kCannotCreate:
      return "cannot_create";
    case ErrorCode::kDamaged:
      return "damaged";
    case ErrorCode::kNewerVersion:
      return "newer_version";
    case ErrorCode::kIoError:
      return "io_error";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kHandlerFailed:
      return "handler_failed";
    case ErrorCode::kTimedOut:
      return "timed_out";
  }
  return "unknown";
}

}  // namespace bide
