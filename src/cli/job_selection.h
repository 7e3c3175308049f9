// Choosing jobs by flags: --queue, --kind, --error, --since, --until, --limit.

#pragma once

#include <cstddef>
#include <string>

#include "bide/inspector.h"
#include "cli/invocation.h"

namespace bide::cli {

inline constexpr Flag kQueueFilter = {"--queue", "NAME", "only of this queue"};
inline constexpr Flag kKindFilter = {"--kind", "KIND", "only of this kind"};
inline constexpr Flag kErrorFilter = {"--error", "TEXT", "only those whose newest error contains this"};
inline constexpr Flag kSinceFilter = {
    "--since", "TIME", "only those that finished, or are due, at or after this time; 2h: in the last two hours"};
inline constexpr Flag kUntilFilter = {
    "--until", "TIME", "only those that finished, or are due, up to this time; 2h: more than two hours ago"};
inline constexpr Flag kLimitFlag = {"--limit", "N", "at most so many, from 1"};
inline constexpr Flag kYesFlag = {"--yes", "", "do not ask"};
inline constexpr Flag kDryRunFlag = {"--dry-run", "", "only say what would be done"};

JobFilter filter_of(const Invocation& call);
bool has_filter(const Invocation& call);

inline constexpr Flag kCursorFlag = {"--cursor", "CURSOR", "where the page before ended"};

// Every job that matches, from the cursor on and up to `most`, page by page; `next` is where to go on.
JobPage list_all(Inspector& inspector, const JobFilter& filter, std::size_t most, std::string cursor = {});

// As a table or as JSON, and whether there are more.
void print_page(const Invocation& call, const JobPage& page, const char* nothing);

// Asks on a terminal; elsewhere --yes is needed. Throws Failure when the answer is no.
void confirm(const Invocation& call, const std::string& what);

}  // namespace bide::cli
