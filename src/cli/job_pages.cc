#include "cli/job_pages.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/ask.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

// The broker sorts each part by itself; its cursors go behind the part's name.
struct Part {
  std::string_view name;
  std::vector<JobState> states;
};

std::vector<Part> parts_of(const JobFilter& filter) {
  std::vector<Part> parts = {{"live.", {JobState::kScheduled, JobState::kReady, JobState::kRunning}},
                             {"finished.", {JobState::kDone, JobState::kDead}}};
  if (filter.states.empty()) return parts;
  for (Part& part : parts) {
    std::erase_if(part.states, [&](JobState state) {
      return std::find(filter.states.begin(), filter.states.end(), state) == filter.states.end();
    });
  }
  std::erase_if(parts, [](const Part& part) { return part.states.empty(); });
  return parts;
}

JobPage page_of(Inspector& inspector, JobFilter filter, const Part& part, std::string cursor, std::size_t limit) {
  filter.states = part.states;
  return ask<JobPage>([&](auto done) { inspector.list(filter, std::move(cursor), limit, std::move(done)); });
}

}  // namespace

JobPage job_page_at(Inspector& inspector, const JobFilter& filter, const std::string& cursor, std::size_t limit) {
  const std::vector<Part> parts = parts_of(filter);
  auto part = parts.begin();
  std::string inside;
  if (!cursor.empty()) {
    part = std::find_if(parts.begin(), parts.end(), [&](const Part& each) { return cursor.starts_with(each.name); });
    if (part == parts.end())
      fail_usage("--cursor: " + core::quoted(cursor) + " is not one that was given out for these flags");
    inside = cursor.substr(part->name.size());
  }
  JobPage page;
  for (; part != parts.end(); ++part) {
    if (page.jobs.size() == limit) {
      if (!page_of(inspector, filter, *part, "", 1).jobs.empty()) page.next = part->name;
      break;
    }
    JobPage more = page_of(inspector, filter, *part, std::exchange(inside, {}), limit - page.jobs.size());
    std::move(more.jobs.begin(), more.jobs.end(), std::back_inserter(page.jobs));
    if (!more.next.empty()) {
      page.next = std::string(part->name) + more.next;
      break;
    }
  }
  return page;
}

}  // namespace bide::cli
