// Names: small numbers for the names of queues, kinds and workers, so that an entry can hold them.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace bide::engine {

class Names {
 public:
  static constexpr std::size_t kMost = 65'535;

  // Nothing when there are too many different names already.
  std::optional<std::uint16_t> intern(std::string_view name) {
    if (last_ < names_.size() && names_[last_] == name) return static_cast<std::uint16_t>(last_);
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) {
      last_ = found->second;
      return found->second;
    }
    if (names_.size() >= kMost) return std::nullopt;
    const auto number = static_cast<std::uint16_t>(names_.size());
    names_.emplace_back(name);
    numbers_.emplace(names_.back(), number);
    last_ = number;
    return number;
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
  std::deque<std::string> names_;  // A deque: the views below stay valid.
  std::unordered_map<std::string_view, std::uint16_t> numbers_;
  std::size_t last_ = 0;  // Most jobs in a row have the same names.
};

}  // namespace bide::engine
