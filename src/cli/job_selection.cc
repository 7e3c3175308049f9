#include "cli/job_selection.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <string>

#include "cli/ask.h"
#include "cli/failure.h"
#include "cli/say.h"
#include "cli/terminal.h"

namespace bide::cli {

namespace {

constexpr std::size_t kPage = 500;
constexpr std::array kFilters = {kQueueFilter, kKindFilter, kErrorFilter, kSinceFilter, kUntilFilter};

}  // namespace

JobFilter filter_of(const Invocation& call) {
  return {.states = {},
          .queue = call.value_or(kQueueFilter.name, ""),
          .kind = call.value_or(kKindFilter.name, ""),
          .error = call.value_or(kErrorFilter.name, ""),
          .since = call.since(kSinceFilter.name),
          .until = call.since(kUntilFilter.name)};
}

bool has_filter(const Invocation& call) {
  return std::any_of(kFilters.begin(), kFilters.end(), [&](const Flag& flag) { return call.has(flag.name); });
}

std::vector<JobInfo> list_all(Inspector& inspector, const JobFilter& filter, std::size_t most) {
  std::vector<JobInfo> jobs;
  std::string cursor;
  while (jobs.size() < most) {
    JobPage page = ask<JobPage>([&](auto done) {
      inspector.list(filter, cursor, std::min(kPage, most - jobs.size()), std::move(done));
    });
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(jobs));
    if (page.next.empty()) break;
    cursor = std::move(page.next);
  }
  return jobs;
}

void confirm(const Invocation& call, const std::string& what) {
  if (call.has(kYesFlag.name)) return;
  if (!stdin_is_terminal() || !stderr_is_terminal()) fail_usage("this would " + what + "; add --yes to do it");
  std::fprintf(stderr, "This will %s. Go on? [y/N] ", for_people(what).c_str());
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "Y" && answer != "yes") throw Failure{kUsage, "nothing was done"};
}

}  // namespace bide::cli
