// Failure: ends a command with one line on stderr and an exit code. Thrown, and caught in one place (main.cc): every
// error ends the command, so no caller has to check for it.
//
//   Client client = take(Client::open(url));
//   const AuditReport report = ask<AuditReport>([&](auto done) { inspector.audit(std::move(done)); });

#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "bide/result.h"
#include "bide/wait.h"

namespace bide::cli {

// The codes of sysexits.h that are used, and 1.
enum ExitCode : int {
  kOk = 0,
  kJobFailed = 1,
  kUsage = 64,
  kDamagedData = 65,
  kNotThere = 66,
  kUnreachable = 69,
  kInternal = 70,
  kCannotMake = 73,
  kInputOutput = 74,
  kTryAgain = 75,
  kNotConfirmed = 76,
  kNotPermitted = 77,
  kConfiguration = 78,
};

struct ExitCodeInfo {
  ExitCode code;
  std::string_view name;  // For programs, where a Failure has no code of its own.
  std::string_view text;  // For the manual page.
};

inline constexpr auto kExitCodes = std::to_array<ExitCodeInfo>({
    {kOk, "ok", "It worked."},
    {kJobFailed, "job_failed",
     "With --wait: the job is dead. With audit and doctor: something is wrong. With dead replay: too many failed "
     "again."},
    {kUsage, "usage", "What was typed is not right, or the job is in a state that does not allow it."},
    {kDamagedData, "damaged", "Stored data is damaged, or was written by a newer version."},
    {kNotThere, "not_found", "There is no such job, queue, file, program or store."},
    {kUnreachable, "unavailable", "The broker does not answer."},
    {kInternal, "internal", "A mistake in bide."},
    {kCannotMake, "cannot_create", "The data directory cannot be made."},
    {kInputOutput, "io_error", "The disk failed or is full, or the output could not be written."},
    {kTryAgain, "try_again",
     "Not now: another process owns the data, the unique key is held, or a wait was too short."},
    {kNotConfirmed, "unconfirmed",
     "Not confirmed: it may have happened. Look before you do it again, or use the same --id."},
    {kNotPermitted, "permission_denied", "The operating system or the server said no."},
    {kConfiguration, "configuration", "The URL or a setting in it is wrong."},
});

struct Failure {
  int exit_code = kInternal;
  std::string message;
  std::string code = {};  // For programs; empty: the name of the exit code.
  std::string id = {};    // For programs: of the job that it is about, where they cannot know it.
};

int exit_code_of(ErrorCode code);
// One line on stderr: the message, or {"error":{"code":"not_found","message":"...","exit":66}},
// with an id if there is one. Returns the exit code.
int report(const Failure& failure, bool json);

// A mistake in what was typed.
[[noreturn]] void fail_usage(std::string message);
[[noreturn]] void fail(const Error& error);
// Of opening what a URL or a configuration names: when that is wrong, it is kConfiguration.
[[noreturn]] void fail_configured(const Error& error);

template <class T>
T take(Result<T> result) {
  if (!result) fail(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

template <class T, class Start>
T ask(Start&& start) {
  return take(wait<T>(std::forward<Start>(start)));
}

}  // namespace bide::cli
