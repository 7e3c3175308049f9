// Names: interned names of queues, kinds and workers, with 16-bit numbers that fit into an entry. Reference-counted: the
// number of a name that nobody holds is reused.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/fatal.h"
#include "platform/keyed_hash.h"

namespace bide::engine {

class Names {
 public:
  static constexpr std::size_t kMost = 65'535;

  // Adds a reference. Nothing: there are too many names.
  std::optional<std::uint16_t> hold(std::string_view name) {
    for (const std::uint16_t recent : recent_) {
      if (exists(recent) && names_[recent] == name) return hold(recent);
    }
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return remember(hold(found->second));
    if (full()) return std::nullopt;
    std::uint16_t number = static_cast<std::uint16_t>(names_.size());
    if (free_.empty()) {
      names_.emplace_back(name);
      uses_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
      names_[number] = name;
    }
    numbers_.emplace(names_[number], number);
    return remember(hold(number));
  }
  std::uint16_t hold(std::uint16_t number) {
    ++uses_[number].all;
    return number;
  }
  // True: it was the last reference, and the number is free.
  bool release(std::uint16_t number) {
    Uses& uses = uses_[number];
    platform::require(uses.all > uses.done, "a name is released that nobody holds");
    if (--uses.all != 0) return false;
    numbers_.erase(names_[number]);
    names_[number] = {};
    ++freed_;
    free_.push_back(number);
    return true;
  }
  // One of the references belongs to a done job, from now on or no longer.
  void is_done(std::uint16_t number, bool done) {
    Uses& uses = uses_[number];
    platform::require(done ? uses.done < uses.all : uses.done > 0, "more done jobs hold a name than jobs");
    uses.done = done ? uses.done + 1 : uses.done - 1;
  }

  std::optional<std::uint16_t> find(std::string_view name) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) return std::nullopt;
    return found->second;
  }

  const std::string& operator[](std::uint16_t number) const { return names_[number]; }
  // Numbers are below this; not each of them has a name.
  std::size_t size() const { return names_.size(); }
  bool exists(std::uint16_t number) const { return number < uses_.size() && uses_[number].all != 0; }
  std::size_t existing() const { return numbers_.size(); }
  bool full() const { return existing() >= kMost; }
  std::uint64_t uses(std::uint16_t number) const { return uses_[number].all; }
  // How often a number was made free.
  std::uint64_t freed() const { return freed_; }
  // Only done jobs hold it.
  bool is_only_done(std::uint16_t number) const { return uses_[number].all == uses_[number].done; }

 private:
  struct Uses {
    std::uint64_t all = 0;
    std::uint64_t done = 0;
  };

  std::uint16_t remember(std::uint16_t number) {
    recent_[next_recent_++ % recent_.size()] = number;
    return number;
  }

  std::deque<std::string> names_;  // A deque: the views below stay valid.
  std::vector<Uses> uses_;
  std::vector<std::uint16_t> free_;
  std::uint64_t freed_ = 0;
  platform::KeyedMap<std::string_view, std::uint16_t> numbers_;
  // Most jobs in a row have the same few names, and comparing is faster than a look-up.
  std::array<std::uint16_t, 4> recent_{};
  std::size_t next_recent_ = 0;
};

}  // namespace bide::engine
