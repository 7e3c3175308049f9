// Failure: ends a command with one line on stderr and an exit code. Thrown, and caught in one place (command_line.cc):
// for a command every error is the end, so checking each by hand would only repeat itself.
//
//   Client client = take(Client::open(url));

#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "bide/result.h"

namespace bide::cli {

// The codes of sysexits.h that we use, and 1.
enum ExitCode : int {
  kOk = 0,
  kJobFailed = 1,  // --wait: the job is dead.
  kUsage = 64,
  kDamagedData = 65,
  kNotThere = 66,
  kUnreachable = 69,
  kInternal = 70,
  kCannotMake = 73,
  kInputOutput = 74,
  kTryAgain = 75,
  kNotConfirmed = 76,  // It may have happened.
  kNotPermitted = 77,
  kConfiguration = 78,
};

struct Failure {
  int exit_code = kInternal;
  std::string message;
  std::string code = {};  // For programs; empty: what the exit code stands for.
};

int exit_code_of(ErrorCode code);
// {"error":{"code":"not_found","message":"...","exit":66}}
std::string to_json(const Failure& failure);

// A mistake in what was typed.
[[noreturn]] void fail_usage(std::string message);
[[noreturn]] void fail(const Error& error);

template <class T>
T take(Result<T> result) {
  if (!result) fail(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace bide::cli
