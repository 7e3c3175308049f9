// Dead groups: dead jobs of one kind that died of the same error, with numbers, ids, addresses and quoted texts folded away. One
// cause usually is one group.
//
//   for (const bide::DeadGroup& group : bide::dead_groups(client)->groups) std::cout << group.count << ' ' << group.error << '\n';
//   bide::replay_group(client, group.id);   // The cause is repaired: run all of them again.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "bide/result.h"

namespace bide {

class Client;

struct DeadGroup {
  std::string id = {};     // Of kind and error alone: the same in every process and at any time.
  std::string kind = {};
  std::string error = {};  // Folded.
  std::uint64_t count = 0;
  Time first = {};         // When they died.
  Time last = {};
  JobId example = {};      // The newest.
  std::vector<std::string> queues = {};  // Of the first ten.
};

struct DeadGroups {
  std::vector<DeadGroup> groups = {};  // The largest first.
  std::uint64_t looked_at = 0;         // Dead jobs.
  bool complete = true;                // All of them were looked at.
};

// The id of the group that a dead job is in.
std::string dead_group_of(const JobInfo& dead);

// Of the dead jobs that match, at most so many.
Result<DeadGroups> dead_groups(const Client& client, const JobFilter& filter = {}, std::uint64_t most = 1'000'000);

// What became of the jobs of a group.
struct GroupChange {
  std::uint64_t succeeded = 0;
  std::vector<Error> problems = {};  // Of those that were no longer dead, for example.
};

// `like` is the id of a group, or of a job of it. Jobs that die meanwhile are left alone. kInvalidArgument: it is neither.
// kNotFound, kWrongState: there is no such job, or it is not dead.
Result<GroupChange> replay_group(const Client& client, std::string_view like, const ReplayOptions& options = {});
Result<GroupChange> delete_group(const Client& client, std::string_view like);

}  // namespace bide
