#include "cli/failure.h"

#include <array>
#include <cstdio>

#include "cli/output.h"
#include "core/url_escape.h"

namespace bide::cli {

namespace {

struct ExitOfError {
  ErrorCode error;
  ExitCode exit;
};

constexpr std::array kExitOfError = {
    ExitOfError{ErrorCode::kInvalidArgument, kUsage},
    ExitOfError{ErrorCode::kNotFound, kNotThere},
    ExitOfError{ErrorCode::kAlreadyExists, kTryAgain},  // The key is free again when the job that holds it has finished.
    ExitOfError{ErrorCode::kLeaseLost, kTryAgain},
    ExitOfError{ErrorCode::kWrongState, kUsage},
    ExitOfError{ErrorCode::kUnavailable, kUnreachable},
    ExitOfError{ErrorCode::kUnconfirmed, kNotConfirmed},
    ExitOfError{ErrorCode::kOverloaded, kTryAgain},
    ExitOfError{ErrorCode::kDiskFull, kInputOutput},
    ExitOfError{ErrorCode::kBusy, kTryAgain},
    ExitOfError{ErrorCode::kPermissionDenied, kNotPermitted},
    ExitOfError{ErrorCode::kCannotCreate, kCannotMake},
    ExitOfError{ErrorCode::kDamaged, kDamagedData},
    ExitOfError{ErrorCode::kNewerVersion, kDamagedData},
    ExitOfError{ErrorCode::kIoError, kInputOutput},
    ExitOfError{ErrorCode::kUnsupported, kUnreachable},
    ExitOfError{ErrorCode::kHandlerFailed, kJobFailed},
    ExitOfError{ErrorCode::kTimedOut, kTryAgain},
};

std::string_view code_of(const Failure& failure) {
  if (!failure.code.empty()) return failure.code;
  for (const ExitCodeInfo& info : kExitCodes) {
    if (info.code == failure.exit_code) return info.name;
  }
  return "internal";
}

}  // namespace

int report(const Failure& failure, bool json) {
  std::fflush(stdout);
  if (json) {
    JsonObject error;
    error.add("code", code_of(failure))
        .add("message", core::without_secrets(failure.message))
        .add("exit", failure.exit_code);
    if (!failure.id.empty()) error.add("id", failure.id);
    std::fprintf(stderr, "%s\n", JsonObject().add("error", error).text().c_str());
  } else {
    tell("error: " + failure.message);
  }
  return failure.exit_code;
}

int exit_code_of(ErrorCode code) {
  for (const ExitOfError& row : kExitOfError) {
    if (row.error == code) return row.exit;
  }
  return kInternal;
}

void fail_usage(std::string message) { throw Failure{kUsage, std::move(message)}; }

void fail(const Error& error) {
  throw Failure{exit_code_of(error.code), error.message, std::string(to_string(error.code))};
}

void fail_configured(const Error& error) {
  const bool wrong = error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kUnsupported;
  throw Failure{wrong ? kConfiguration : exit_code_of(error.code), error.message, std::string(to_string(error.code))};
}

}  // namespace bide::cli
