// UnackedTags: the delivery tags of a channel that are not acknowledged yet, which of them are settled, and the fewest
// acknowledgements that say so. One that covers many
// (multiple) is possible only when everything before it is settled too; the others are acknowledged one by one.
//
// Tags of a channel come in order, without gaps.

#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace bide::brokers::rabbitmq {

class UnackedTags {
 public:
  struct Ack {
    std::uint64_t tag = 0;
    bool multiple = false;

    friend bool operator==(const Ack&, const Ack&) = default;
  };

  void delivered(std::uint64_t tag) {
    if (tags_.empty()) first_ = tag;
    tags_.push_back(Tag::kOut);
  }

  void settle(std::uint64_t tag) {
    if (tag < first_ || tag - first_ >= tags_.size()) return;
    Tag& state = tags_[static_cast<std::size_t>(tag - first_)];
    if (state != Tag::kOut) return;
    state = Tag::kSettled;
    settled_.push_back(tag);
  }

  // It has left in another way.
  void leave_out(std::uint64_t tag) {
    if (tag < first_ || tag - first_ >= tags_.size()) return;
    Tag& state = tags_[static_cast<std::size_t>(tag - first_)];
    if (state == Tag::kOut) state = Tag::kSent;
    while (!tags_.empty() && tags_.front() == Tag::kSent) {
      tags_.pop_front();
      ++first_;
    }
  }

  // What must be sent now. Everything settled is covered.
  std::vector<Ack> flush() {
    std::vector<Ack> acks;
    if (settled_.empty()) return acks;
    std::size_t covered = 0;
    std::uint64_t last = 0;  // The server refuses a tag that it does not know any more, so it must be one not yet sent.
    std::size_t in_prefix = 0;
    while (covered < tags_.size() && tags_[covered] != Tag::kOut) {
      if (tags_[covered] == Tag::kSettled) last = first_ + covered, ++in_prefix;
      ++covered;
    }
    if (in_prefix > 0) acks.push_back({last, in_prefix > 1});
    for (const std::uint64_t tag : settled_) {
      if (tag < first_ + covered) continue;
      acks.push_back({tag, false});
      tags_[static_cast<std::size_t>(tag - first_)] = Tag::kSent;
    }
    settled_.clear();
    tags_.erase(tags_.begin(), tags_.begin() + static_cast<std::ptrdiff_t>(covered));
    first_ += covered;
    return acks;
  }

  bool has_settled() const { return !settled_.empty(); }
  bool empty() const { return tags_.empty(); }
  // Not settled; some of those in between may be.
  std::size_t out() const { return tags_.size(); }
  void clear() { tags_.clear(), settled_.clear(); }

 private:
  enum class Tag : std::uint8_t { kOut, kSettled, kSent };

  std::uint64_t first_ = 1;
  std::deque<Tag> tags_;
  std::vector<std::uint64_t> settled_;
};

}  // namespace bide::brokers::rabbitmq
