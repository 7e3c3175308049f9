// What the exit codes and the variables of the environment mean, for the manual page.

#pragma once

#include <array>
#include <string_view>

#include "cli/failure.h"

namespace bide::cli {

struct ExitText {
  ExitCode code;
  std::string_view text;
};

inline constexpr std::array kExitTexts = {
    ExitText{kOk, "It worked."},
    ExitText{
        kJobFailed,
        "With --wait: the job is dead. With audit and doctor: something is wrong. With dead replay: too many failed "
        "again."},
    ExitText{kUsage, "What was typed is not right."},
    ExitText{kDamagedData, "Stored data is damaged, or was written by a newer version."},
    ExitText{kNotThere, "There is no such job, queue, file, program or store."},
    ExitText{kUnreachable, "The broker does not answer."},
    ExitText{kInternal, "A mistake in bide."},
    ExitText{kCannotMake, "The data directory cannot be made."},
    ExitText{kInputOutput, "The disk failed or is full, or the output could not be written."},
    ExitText{kTryAgain, "Not now: another process owns the data, the unique key is held, or a wait was too short."},
    ExitText{kNotConfirmed, "Not confirmed: it may have happened. Look before you do it again, or use the same --id."},
    ExitText{kNotPermitted, "The operating system or the server said no."},
    ExitText{kConfiguration, "The URL or a setting in it is wrong."},
};

struct EnvironmentText {
  std::string_view name;
  std::string_view text;
};

inline constexpr std::array kEnvironmentTexts = {
    EnvironmentText{"BIDE_URL", "Where the jobs live, when --url is not given."},
    EnvironmentText{"NO_COLOR", "When not empty: no colour, also on a terminal."},
};

}  // namespace bide::cli
