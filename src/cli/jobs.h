// What the commands about jobs share: choosing jobs by flags, showing jobs, queues and audits, waiting for a job.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bide/client.h"
#include "bide/inspector.h"
#include "cli/invocation.h"
#include "cli/output.h"

namespace bide::cli {

inline constexpr Flag kQueueFilter = {"--queue", "NAME", "only of this queue"};
inline constexpr Flag kKindFilter = {"--kind", "KIND", "only of this kind"};
inline constexpr Flag kGroupFilter = {"--group", "NAME", "only of this group"};
inline constexpr Flag kFlowFilter = {"--flow", "ID", "only of this flow"};
inline constexpr Flag kHeaderFilter = {"--header", "NAME=VALUE", "only with this header; several must all be there", true};
inline constexpr Flag kErrorFilter = {"--error", "TEXT", "only those whose newest error contains this"};
inline constexpr Flag kSinceFilter = {
    "--since", "TIME", "only those that finished, or are due, at or after this time; 2h: in the last two hours"};
inline constexpr Flag kUntilFilter = {
    "--until", "TIME", "only those that finished, or are due, up to this time; 2h: more than two hours ago"};
inline constexpr std::array kFilterFlags = {kQueueFilter,  kKindFilter,  kGroupFilter, kFlowFilter,
                                            kHeaderFilter, kErrorFilter, kSinceFilter, kUntilFilter};
inline constexpr Flag kCursorFlag = {"--cursor", "CURSOR", "where the page before ended"};

// By the flags above.
JobFilter filter_of(const Invocation& call);
bool has_filter(const Invocation& call);
// A page of what matches. Throws Failure.
JobPage list_page(const Client& client, const JobFilter& filter, std::string cursor, std::size_t most);
// Every job that matches, from the cursor on and up to `most`, page by page; `next` is where to go on. Throws Failure.
JobPage list_all(const Client& client, const JobFilter& filter, std::size_t most, std::string cursor = {});
// Reads "dead" or "scheduled"; throws Failure with the list.
JobState parse_state(std::string_view text);

// Stable: fields are added, never renamed. What is not UTF-8 has a name that ends in _base64 instead: body_base64. What
// the broker does not keep of a job that is done is null, and so is when it was due once it is done or dead.
JsonObject job_json(const JobInfo& info);
// Everything about one job, a line for each fact.
std::string job_text(const JobInfo& info, Time now);
std::string percent_text(double percent);  // "62.5 %"
std::string queue_table(const std::vector<QueueInfo>& queues, Time now);
std::string audit_text(const AuditReport& report);
// "in 5m", "2h ago", "now".
std::string relative_time(Time time, Time now);
// At most so many characters, the rest as "...".
std::string shortened(std::string_view text, std::size_t width);

// As a table or as JSON, and whether there are more.
void print_page(const Invocation& call, const JobPage& page, std::string_view nothing);
// What became of each of several jobs: a line each; errors go to stderr, and the first is thrown as a Failure.
// Otherwise 0.
int print_statuses(const Invocation& call, std::string_view verb, const std::vector<JobId>& ids,
                   const std::vector<Status>& statuses, const Warnings* warnings = nullptr);

inline constexpr Flag kMostFlag = {"--limit", "N", "at most so many, from 1"};
inline constexpr std::size_t kNoLimit = 1'000'000'000;

struct Verb {
  std::string_view name;  // "cancel"
  std::string_view done;  // "cancelled"
};

// Counts what matches one of the filters (--limit), asks or says what would be done (--yes, --dry-run), and acts in pieces, so that work goes on
// meanwhile; `apply` gives what became of each of them. Prints the sums. Throws Failure, with the first problem, when it did
// not work for all.
int change_matching(const Invocation& call, const Client& client, std::vector<JobFilter> filters, Verb verb,
                    const std::function<std::vector<Status>(const std::vector<JobId>&)>& apply);
// How many would be dealt with, by kind; for --dry-run.
int print_plan(const Invocation& call, Verb verb, const std::map<std::string, std::uint64_t>& kinds);

inline constexpr Flag kTimeoutFlag = {"--timeout", "DURATION", "how long to wait; default: 1m"};

Milliseconds timeout_of(const Invocation& call);
// Waits for the job's end and prints the result, or with --json everything. 0 done, 1 dead; throws Failure 75 when it
// was neither in time.
int wait_and_print(const Client& client, JobId id, Milliseconds timeout, bool json,
                   const Warnings* warnings = nullptr);

}  // namespace bide::cli
