#include "bide/dead_groups.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bide/client.h"
#include "bide/wait.h"
#include "core/dead_grouping.h"
#include "core/quote.h"

namespace bide {

namespace {

constexpr std::size_t kPage = 1000;

// Page by page, until `see` says that it is enough; whether all were seen.
Result<bool> look_at_dead(const Client& client, JobFilter filter, const std::function<Result<bool>(const JobPage&)>& see) {
  filter.states = {JobState::kDead};
  filter.bodies = false;
  std::string cursor;
  do {
    auto page = wait<JobPage>([&](auto done) { client.inspector().list(filter, cursor, kPage, std::move(done)); });
    if (!page) return page.error();
    const Result<bool> more = see(*page);
    if (!more) return more;
    cursor = page->next;
    if (!*more) return cursor.empty();
  } while (!cursor.empty());
  return true;
}

Result<std::string> group_like(const Client& client, std::string_view like) {
  if (core::is_dead_group_id(like)) return std::string(like);
  const auto id = JobId::parse(like);
  if (!id) {
    return Error{ErrorCode::kInvalidArgument, core::quoted(like) + " is neither the id of a group of dead jobs nor of a job"};
  }
  const auto info = client.find(*id);
  if (!info) return info.error();
  if (info->state == JobState::kDead) return dead_group_of(*info);
  return Error{ErrorCode::kWrongState, "job " + id->to_string() + " is not dead but " + std::string(to_string(info->state))};
}

using Apply = std::function<void(std::vector<JobId>, Completion<std::vector<Status>>)>;

Result<GroupChange> change_group(const Client& client, std::string_view like, const Apply& apply) {
  const auto group = group_like(client, like);
  if (!group) return group.error();
  GroupChange change;
  // Those that die again meanwhile would never come to an end.
  const Time now = std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now());
  const auto all = look_at_dead(client, {.until = now}, [&](const JobPage& page) -> Result<bool> {
    std::vector<JobId> ids;
    for (const JobInfo& info : page.jobs) {
      if (dead_group_of(info) == *group) ids.push_back(info.job.id);
    }
    if (ids.empty()) return true;
    const auto statuses = wait<std::vector<Status>>([&](auto done) { apply(ids, std::move(done)); });
    if (!statuses) return statuses.error();
    for (const Status& status : *statuses) {
      status ? void(++change.succeeded) : change.problems.push_back(status.error());
    }
    return true;
  });
  if (!all) return all.error();
  return change;
}

}  // namespace

Result<DeadGroups> dead_groups(const Client& client, const JobFilter& filter, std::uint64_t most) {
  core::DeadGrouping grouping;
  std::uint64_t left = most;
  const auto all = look_at_dead(client, filter, [&](const JobPage& page) -> Result<bool> {
    for (const JobInfo& info : page.jobs) grouping.add(info);
    left -= std::min<std::uint64_t>(left, page.jobs.size());
    return left > 0;
  });
  if (!all) return all.error();
  return grouping.take(*all);
}

Result<GroupChange> replay_group(const Client& client, std::string_view like, const ReplayOptions& options) {
  return change_group(client, like, [&](std::vector<JobId> ids, auto done) {
    client.inspector().replay(std::move(ids), options, std::move(done));
  });
}

Result<GroupChange> delete_group(const Client& client, std::string_view like) {
  return change_group(client, like, [&](std::vector<JobId> ids, auto done) {
    client.inspector().cancel(std::move(ids), {.state = JobState::kDead}, std::move(done));
  });
}

}  // namespace bide
