#include "cli/job_selection.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "cli/ask.h"
#include "cli/failure.h"
#include "cli/job_text.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "core/job_rules.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr std::size_t kPage = 500;
constexpr std::array kFilters = {kQueueFilter, kKindFilter, kErrorFilter, kSinceFilter, kUntilFilter};

}  // namespace

JobFilter filter_of(const Invocation& call) {
  for (const Flag& flag : {kQueueFilter, kKindFilter}) {
    const std::string name = call.value_or(flag.name, "any");
    if (!core::is_name(name)) fail_usage(std::string(flag.name) + ": " + core::quoted(name) + " is not a valid name");
  }
  return {.states = {},
          .queue = call.value_or(kQueueFilter.name, ""),
          .kind = call.value_or(kKindFilter.name, ""),
          .error = call.value_or(kErrorFilter.name, ""),
          .since = call.since(kSinceFilter.name),
          .until = call.since(kUntilFilter.name),
          .bodies = false};
}

bool has_filter(const Invocation& call) {
  return std::any_of(kFilters.begin(), kFilters.end(), [&](const Flag& flag) { return call.has(flag.name); });
}

JobPage list_all(Inspector& inspector, const JobFilter& filter, std::size_t most, std::string cursor) {
  JobPage all{.jobs = {}, .next = std::move(cursor)};
  do {
    JobPage page = ask<JobPage>([&](auto done) {
      inspector.list(filter, all.next, std::min(kPage, most - all.jobs.size()), std::move(done));
    });
    std::move(page.jobs.begin(), page.jobs.end(), std::back_inserter(all.jobs));
    all.next = std::move(page.next);
  } while (!all.next.empty() && all.jobs.size() < most);
  return all;
}

void print_page(const Invocation& call, const JobPage& page, const char* nothing) {
  if (call.json()) {
    JsonArray jobs;
    for (const JobInfo& info : page.jobs) jobs.add(to_json(info));
    JsonObject json;
    json.add("jobs", jobs);
    if (page.next.empty()) {
      json.add_null("next");
    } else {
      json.add("next", page.next);
    }
    std::puts(json.text().c_str());
    return;
  }
  if (page.jobs.empty()) {
    std::puts(nothing);
    return;
  }
  std::fputs(job_table(page.jobs, now()).c_str(), stdout);
  if (!page.next.empty()) say("there are more: --cursor " + page.next);
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
