#include "cli/failure.h"

#include <array>

namespace bide::cli {

namespace {

struct Row {
  ErrorCode error;
  ExitCode exit;
};

constexpr std::array kRows = {
    Row{ErrorCode::kInvalidArgument, kUsage},
    Row{ErrorCode::kNotFound, kNotThere},
    Row{ErrorCode::kAlreadyExists, kTryAgain},  // The key is free again when the job that holds it has finished.
    Row{ErrorCode::kLeaseLost, kTryAgain},
    Row{ErrorCode::kWrongState, kUsage},
    Row{ErrorCode::kUnavailable, kUnreachable},
    Row{ErrorCode::kOverloaded, kTryAgain},
    Row{ErrorCode::kDiskFull, kInputOutput},
    Row{ErrorCode::kBusy, kTryAgain},
    Row{ErrorCode::kPermissionDenied, kNotPermitted},
    Row{ErrorCode::kCannotCreate, kCannotMake},
    Row{ErrorCode::kDamaged, kDamagedData},
    Row{ErrorCode::kNewerVersion, kDamagedData},
    Row{ErrorCode::kIoError, kInputOutput},
    Row{ErrorCode::kUnsupported, kUnreachable},
};

}  // namespace

int exit_code_of(ErrorCode code) {
  for (const Row& row : kRows) {
    if (row.error == code) return row.exit;
  }
  return kInternal;
}

void fail_usage(std::string message) { throw Failure{kUsage, std::move(message)}; }

void fail(const Error& error) { throw Failure{exit_code_of(error.code), error.message}; }

}  // namespace bide::cli
