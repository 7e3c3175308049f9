// What flags and arguments say about a job itself, for the commands that make or change one. All throw Failure.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/enqueue_options.h"
#include "cli/invocation.h"

namespace bide::cli {

inline constexpr Argument kBodyArgument = {"BODY", "the text itself; - for stdin; @FILE for a file", true};
inline constexpr Flag kHeadersFlag = {"--header", "NAME=VALUE", "carried along with the job; may be given several times", true};

// The flags that jobs have wherever they are given, and these.
std::vector<Flag> with_job_flags(std::vector<Flag> others);
// By those flags, and --delay, --due, --expires, --id, --after, --after-death and --flow where the command has them.
EnqueueOptions enqueue_options(const Invocation& call);

// BODY as it is named on the command line: the text itself, - for stdin, @FILE.
std::string read_body(const std::string& argument);
[[noreturn]] void fail_to_read(const std::string& name, int error);

Headers headers_of(const Invocation& call);
std::optional<RetryPolicy> retry_of(const Invocation& call);
JobId id_of(std::string_view flag, const std::string& text);
// Of a flag that can be given several times.
std::vector<JobId> ids_of(const Invocation& call, std::string_view flag);

// The flag that gives this field of a job: "--time-limit" for time_limit.
std::string flag_of(std::string_view field);
// By core's rules; the message names the flag.
void check_job(const Job& job, Time moment);

}  // namespace bide::cli
