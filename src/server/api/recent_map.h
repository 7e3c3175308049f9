// RecentMap: a map of bounded size. Of more keys, the one that was added first is dropped. Not safe to share between
// threads.

#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "platform/keyed_hash.h"

namespace bide::server {

template <class Key, class Value, class Map = platform::KeyedMap<Key, Value>>
class RecentMap {
 public:
  explicit RecentMap(std::size_t most) : most_(most) {}

  void put(const Key& key, Value value) {
    if (!values_.insert_or_assign(key, std::move(value)).second) return;
    oldest_.push_back(key);
    if (oldest_.size() <= most_) return;
    values_.erase(oldest_.front());
    oldest_.pop_front();
  }
  // Null when it is not there.
  const Value* find(const Key& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  const std::size_t most_;
  Map values_;
  std::deque<Key> oldest_;
};

}  // namespace bide::server
