// SettledTokens: the tokens of leases that ended with their job done. Tokens are granted in order, so they are kept as bitmaps.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace bide::engine {

inline constexpr std::uint64_t kTokensInAGroup = 4096;

struct TokenBits {
  std::array<std::uint64_t, kTokensInAGroup / 64> words{};

  void set(std::uint64_t token) { words[token % kTokensInAGroup / 64] |= 1ull << (token % 64); }
  std::uint64_t count() const {
    std::uint64_t set = 0;
    for (const std::uint64_t word : words) set += static_cast<std::uint64_t>(std::popcount(word));
    return set;
  }
  bool has(std::uint64_t token) const { return (words[token % kTokensInAGroup / 64] >> (token % 64) & 1) != 0; }
};

// Those of one block, while it is being collected.
class TokenGroups {
 public:
  using Groups = std::unordered_map<std::uint64_t, TokenBits>;

  TokenGroups() = default;
  TokenGroups(TokenGroups&&) = default;
  TokenGroups& operator=(TokenGroups&&) = default;

  void add(std::uint64_t token) {
    const std::uint64_t group = token / kTokensInAGroup;
    if (latest_ == nullptr || group != latest_group_) {
      latest_ = &groups_[group];
      latest_group_ = group;
    }
    latest_->set(token);
  }
  bool has(std::uint64_t token) const {
    const auto found = groups_.find(token / kTokensInAGroup);
    return found != groups_.end() && found->second.has(token);
  }
  const Groups& groups() const { return groups_; }

 private:
  Groups groups_;
  // Most leases end in about the order in which they were given. A group stays where it is in memory.
  std::uint64_t latest_group_ = 0;
  TokenBits* latest_ = nullptr;
};

// Those of all blocks.
class SettledTokens {
 public:
  static constexpr std::uint64_t kGroupBytes = sizeof(TokenBits) + 64;

  void add(std::uint64_t group, const TokenBits& bits, std::uint64_t block) {
    Kept& kept = groups_[group];
    for (std::size_t i = 0; i < bits.words.size(); ++i) kept.bits.words[i] |= bits.words[i];
    kept.block = block;
  }
  bool has(std::uint64_t token) const {
    const auto found = groups_.find(token / kTokensInAGroup);
    return found != groups_.end() && found->second.bits.has(token);
  }
  // Forgets groups of which nothing is in this block or a later one. Those of long leases may stay a little longer.
  void drop_before(std::uint64_t block) {
    while (!groups_.empty() && groups_.begin()->second.block < block) groups_.erase(groups_.begin());
  }
  // How many there were.
  std::uint64_t drop_oldest() {
    const std::uint64_t dropped = groups_.begin()->second.bits.count();
    groups_.erase(groups_.begin());
    return dropped;
  }
  std::uint64_t bytes() const { return groups_.size() * kGroupBytes; }

 private:
  struct Kept {
    TokenBits bits;
    std::uint64_t block = 0;  // The newest with a token of the group.
  };
  std::map<std::uint64_t, Kept> groups_;  // Later tokens are greater.
};

}  // namespace bide::engine
