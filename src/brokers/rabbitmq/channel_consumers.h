// ChannelConsumers: the AMQP consumers of one channel, each with its prefetch, and how many deliveries of each are out.
//
// The prefetch of a consumer cannot be changed, and a quorum queue of 3.10 forgets to pass on what is under way to a
// consumer that is cancelled: such a message stays out, unseen, until its channel is closed. So more prefetch is one
// more consumer, and less is the end of one that is full: nothing can be under way to it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/fatal.h"

namespace bide::brokers::rabbitmq {

class ChannelConsumers {
 public:
  void add(std::string tag, int prefetch) { all_.push_back({std::move(tag), prefetch, 0, true}); }

  // Which consumer a delivery is for; nothing when it is none of these. Counts it as out.
  std::optional<std::size_t> delivered(const std::string& tag) {
    const std::size_t index = find(tag);
    if (index == all_.size()) return std::nullopt;
    all_[index].out += 1;
    return index;
  }
  void settled(std::size_t index) {
    One& one = all_.at(index);
    platform::require(one.out > 0, "a delivery is settled once");
    one.out -= 1;
  }

  // Of those that are not cancelled, together.
  int prefetch() const {
    int sum = 0;
    for (const One& one : all_) sum += one.active ? one.prefetch : 0;
    return sum;
  }
  bool any() const {
    return std::any_of(all_.begin(), all_.end(), [](const One& one) { return one.active; });
  }
  // One that can be cancelled without losing sight of a message.
  std::optional<std::string> full() const {
    for (const One& one : all_) {
      if (one.active && one.out >= one.prefetch) return one.tag;
    }
    return std::nullopt;
  }
  std::optional<std::string> first() const {
    for (const One& one : all_) {
      if (one.active) return one.tag;
    }
    return std::nullopt;
  }
  // What was delivered for it is still known. Returns its prefetch; 0 when there is no such consumer.
  int cancelled(const std::string& tag) {
    const std::size_t index = find(tag);
    if (index == all_.size() || !std::exchange(all_[index].active, false)) return 0;
    return all_[index].prefetch;
  }
  // The channel is gone.
  void clear() { all_.clear(); }

 private:
  struct One {
    std::string tag;
    int prefetch;
    int out;
    bool active;
  };

  std::size_t find(const std::string& tag) const {
    return static_cast<std::size_t>(
        std::find_if(all_.begin(), all_.end(), [&](const One& one) { return one.tag == tag; }) - all_.begin());
  }

  std::vector<One> all_;
};

}  // namespace bide::brokers::rabbitmq
