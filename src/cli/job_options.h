// The job of a command line: its body, and the flags that say how it is run.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bide/enqueue_options.h"
#include "cli/invocation.h"

namespace bide::cli {

inline constexpr Argument kBodyArgument = {"BODY", "the text itself; - for stdin; @FILE for a file", true};

// The flags that jobs have wherever they are given, and these.
std::vector<Flag> with_job_flags(std::vector<Flag> others);

// BODY as it is named on the command line. Throws Failure; likewise below.
std::string read_body(const std::string& argument);
[[noreturn]] void fail_to_read(const std::string& name, int error);

// By those flags, and --delay, --due, --expires and --id where the command has them.
EnqueueOptions enqueue_options(const Invocation& call);

// The flag that gives this field of a job: "--time-limit" for time_limit.
std::string flag_of(std::string_view field);
void check_job(const Job& job, Time moment);

}  // namespace bide::cli
