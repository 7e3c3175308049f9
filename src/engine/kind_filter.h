// KindFilter: the kinds of jobs that a subscription takes (SubscribeOptions::kinds).

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/topics.h"
#include "engine/names.h"

namespace bide::engine {

class KindFilter {
 public:
  KindFilter() = default;
  KindFilter(std::vector<std::string> patterns, const Names& kinds) : patterns_(std::move(patterns)), kinds_(&kinds) {}

  bool takes_all() const { return patterns_.empty(); }
  bool takes(std::string_view kind) const {
    return takes_all() || std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
             return core::topic_matches(pattern, kind);
           });
  }
  bool takes(std::uint16_t kind) {
    if (takes_all()) return true;
    // A number may have been given to another name since.
    if (std::exchange(freed_, kinds_->freed()) != kinds_->freed()) known_.clear();
    if (kind >= known_.size()) known_.resize(kind + std::size_t{1}, kNotSeen);
    if (known_[kind] == kNotSeen) known_[kind] = takes((*kinds_)[kind]) ? kIsTaken : kIsLeft;
    return known_[kind] == kIsTaken;
  }

 private:
  enum Known : std::uint8_t { kNotSeen, kIsTaken, kIsLeft };

  std::vector<std::string> patterns_;
  const Names* kinds_ = nullptr;
  std::uint64_t freed_ = 0;
  std::vector<Known> known_;  // By the number of the kind.
};

}  // namespace bide::engine
