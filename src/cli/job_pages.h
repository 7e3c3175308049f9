// job_page_at: a page of jobs in the order people expect: what is still to come first, next due first; then what is
// finished, newest first.

#pragma once

#include <cstddef>
#include <string>

#include "bide/inspector.h"

namespace bide::cli {

// `cursor` is empty, or the `next` of the page before. Throws Failure.
JobPage job_page_at(Inspector& inspector, const JobFilter& filter, const std::string& cursor, std::size_t limit);

}  // namespace bide::cli
