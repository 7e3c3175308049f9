// Names: small numbers for the names of queues, kinds and workers, so that an entry can hold them.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "platform/keyed_hash.h"

namespace bide::engine {

class Names {
 public:
  static constexpr std::size_t kMost = 65'535;

  // Nothing when there are too many different names already.
  std::optional<std::uint16_t> intern(std::string_view name) {
    for (const std::uint16_t recent : recent_) {
      if (recent < names_.size() && names_[recent] == name) return recent;
    }
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return remember(found->second);
    if (names_.size() >= kMost) return std::nullopt;
    const auto number = static_cast<std::uint16_t>(names_.size());
    names_.emplace_back(name);
    numbers_.emplace(names_.back(), number);
    return remember(number);
  }

  std::optional<std::uint16_t> find(std::string_view name) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return std::nullopt;
    return found->second;
  }

  const std::string& operator[](std::uint16_t number) const { return names_[number]; }
  std::size_t size() const { return names_.size(); }
  bool full() const { return names_.size() >= kMost; }

 private:
  std::uint16_t remember(std::uint16_t number) {
    recent_[next_recent_++ % recent_.size()] = number;
    return number;
  }

  std::deque<std::string> names_;  // A deque: the views below stay valid.
  platform::KeyedMap<std::string_view, std::uint16_t> numbers_;
  // Most jobs in a row have the same few names, and comparing is quicker than looking for one.
  std::array<std::uint16_t, 4> recent_{};
  std::size_t next_recent_ = 0;
};

}  // namespace bide::engine
