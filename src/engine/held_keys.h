// HeldKeys: unique keys that are held for a time after a job was accepted, whatever becomes of the job. Times are on the clock of
// spans, so that a step of the wall clock makes none longer or shorter.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "bide/job_id.h"

namespace bide::engine {

class HeldKeys {
 public:
  bool empty() const { return by_key_.empty(); }
  std::size_t size() const { return by_key_.size(); }

  // A job that holds it for longer keeps it: an older one has been edited.
  void hold(std::string_view key, const JobId& id, std::int64_t until_ms) {
    const auto [at, made] = by_key_.try_emplace(std::string(key));
    Held& held = at->second;
    if (!made && held.id != id && held.until_ms > until_ms) return;
    if (!made) by_time_.erase({held.until_ms, held.number});
    held = {id, until_ms, ++last_number_};
    by_time_.emplace(std::pair(until_ms, held.number), &at->first);
  }
  // Who holds it; nil: nobody.
  JobId holder(std::string_view key, std::int64_t now_ms) const {
    if (by_key_.empty()) return {};
    const auto found = by_key_.find(key);
    return found == by_key_.end() || found->second.until_ms <= now_ms ? JobId() : found->second.id;
  }
  // At most so many of those that are not held any more.
  void forget(std::int64_t now_ms, std::size_t most) {
    for (; most > 0 && !by_time_.empty() && by_time_.begin()->first.first <= now_ms; --most) {
      by_key_.erase(by_key_.find(*by_time_.begin()->second));
      by_time_.erase(by_time_.begin());
    }
  }
  // Up to `most` of those behind `cursor`, in the order of keys; false: that was all.
  template <class F>
  bool walk(std::string& cursor, std::size_t most, F see) const {
    auto at = cursor.empty() ? by_key_.begin() : by_key_.upper_bound(cursor);
    for (; at != by_key_.end() && most > 0; ++at, --most) {
      see(at->first, at->second.id, at->second.until_ms);
      cursor = at->first;
    }
    return at != by_key_.end();
  }

 private:
  struct Held {
    JobId id;
    std::int64_t until_ms = 0;
    std::uint64_t number = 0;
  };

  std::map<std::string, Held, std::less<>> by_key_;
  std::map<std::pair<std::int64_t, std::uint64_t>, const std::string*> by_time_;  // Nodes of a map stay where they are.
  std::uint64_t last_number_ = 0;
};

}  // namespace bide::engine
