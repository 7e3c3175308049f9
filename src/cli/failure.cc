#include "cli/failure.h"

#include <array>

#include "cli/json.h"
#include "core/secrets.h"

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
    Row{ErrorCode::kUnconfirmed, kNotConfirmed},
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

struct Name {
  int exit;
  std::string_view name;
};

constexpr std::array kNames = {
    Name{kJobFailed, "job_failed"},
    Name{kUsage, "usage"},
    Name{kDamagedData, "damaged"},
    Name{kNotThere, "not_found"},
    Name{kUnreachable, "unavailable"},
    Name{kInternal, "internal"},
    Name{kCannotMake, "cannot_create"},
    Name{kInputOutput, "io_error"},
    Name{kTryAgain, "try_again"},
    Name{kNotConfirmed, "unconfirmed"},
    Name{kNotPermitted, "permission_denied"},
    Name{kConfiguration, "configuration"},
};

std::string_view name_of(const Failure& failure) {
  if (!failure.code.empty()) return failure.code;
  for (const Name& each : kNames) {
    if (each.exit == failure.exit_code) return each.name;
  }
  return "internal";
}

}  // namespace

std::string to_json(const Failure& failure) {
  return JsonObject()
      .add("error", JsonObject()
                        .add("code", name_of(failure))
                        .add("message", core::without_secrets(failure.message))
                        .add("exit", failure.exit_code))
      .text();
}

int exit_code_of(ErrorCode code) {
  for (const Row& row : kRows) {
    if (row.error == code) return row.exit;
  }
  return kInternal;
}

void fail_usage(std::string message) { throw Failure{kUsage, std::move(message)}; }

void fail(const Error& error) {
  throw Failure{exit_code_of(error.code), error.message, std::string(to_string(error.code))};
}

}  // namespace bide::cli
