// DeadGrouping: sorts dead jobs into groups by kind and folded error (bide/dead_groups.h), with bounded memory.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bide/dead_groups.h"

namespace bide::core {

class DeadGrouping {
 public:
  void add(const JobInfo& dead);
  // The groups, largest first. Beyond some hundred, the rest is one group with the kind "(other)".
  DeadGroups take(bool complete);

 private:
  std::map<std::pair<std::string, std::string>, DeadGroup> groups_;
  std::uint64_t looked_at_ = 0;
};

// 16 hexadecimal digits.
bool is_dead_group_id(std::string_view text);

}  // namespace bide::core
