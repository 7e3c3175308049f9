#include "core/dead_grouping.h"

#include <algorithm>
#include <tuple>

#include "core/error_folding.h"

namespace bide {

namespace {

constexpr std::size_t kMostGroups = 200;
constexpr std::size_t kMostQueuesOfGroup = 10;
constexpr std::size_t kGroupIdDigits = 16;
constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string error_of(const JobInfo& info) {
  if (!info.history.empty()) return core::fold_error(info.history.back().text);
  return info.dead_reason ? std::string(to_string(*info.dead_reason)) : std::string();
}

// 64 bits of FNV-1a: enough to tell some hundred groups apart, and the same in every process.
std::string group_id(std::string_view kind, std::string_view error) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  add(kind);
  add(std::string_view("\0", 1));
  add(error);
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kHexDigits[hash >> shift & 15];
  return text;
}

}  // namespace

std::string dead_group_of(const JobInfo& dead) { return group_id(dead.job.kind, error_of(dead)); }

namespace core {

void DeadGrouping::add(const JobInfo& dead) {
  ++looked_at_;
  std::pair key{dead.job.kind, error_of(dead)};
  const Time died = dead.finished.value_or(dead.due);
  auto found = groups_.find(key);
  if (found == groups_.end()) {
    if (groups_.size() >= kMostGroups) key = {"(other)", "(other)"};
    found = groups_.try_emplace(key).first;
    if (DeadGroup& made = found->second; made.count == 0) {
      made = {.id = group_id(key.first, key.second), .kind = key.first, .error = key.second, .first = died, .last = died, .example = dead.job.id};
    }
  }
  DeadGroup& group = found->second;
  ++group.count;
  if (died > group.last) std::tie(group.last, group.example) = std::tie(died, dead.job.id);
  group.first = std::min(group.first, died);
  if (group.queues.size() < kMostQueuesOfGroup &&
      std::find(group.queues.begin(), group.queues.end(), dead.job.queue) == group.queues.end()) {
    group.queues.push_back(dead.job.queue);
  }
}

DeadGroups DeadGrouping::take(bool complete) {
  DeadGroups all{.groups = {}, .looked_at = looked_at_, .complete = complete};
  for (auto& [key, group] : groups_) all.groups.push_back(std::move(group));
  groups_.clear();
  std::stable_sort(all.groups.begin(), all.groups.end(),
                   [](const auto& one, const auto& other) { return one.count > other.count; });
  return all;
}

bool is_dead_group_id(std::string_view text) {
  return text.size() == kGroupIdDigits && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

}  // namespace core

}  // namespace bide
