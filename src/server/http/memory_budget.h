// MemoryBudget: how many bytes of bodies and answers the server holds at a time, in shares that cannot use up each other:
//
//   kStrangers   bodies of and answers to callers without an identity
//   kRequests    bodies of those who are known, until they are answered
//   kAnswers     answers to them that are being made or wait to be read
//
// So clients that do not read keep nobody from enqueuing, and nobody without a token takes what those with one need.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace bide::server {

enum class Share : std::uint8_t { kStrangers, kRequests, kAnswers };

// Safe to use from any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t most);

  // False: the share is used up, and nobody could be made to give enough of it back.
  bool take(Share share, std::uint64_t bytes);
  void give_back(Share share, std::uint64_t bytes);

  // These bytes are about to be given back, by a connection that was given up: until expect_no_more() they count as free.
  void expect_back(Share share, std::uint64_t bytes);
  void expect_no_more(Share share, std::uint64_t bytes);

  // Asked when a share is used up. True: so many bytes of it are expected back.
  using MakeRoom = std::function<bool(Share, std::uint64_t)>;
  // The one before is not called any more when this has returned.
  void set_make_room(MakeRoom make_room);

  std::uint64_t held() const;  // Of all shares.
  std::uint64_t limit(Share share) const { return limits_[static_cast<std::size_t>(share)]; }

 private:
  const std::array<std::uint64_t, 3> limits_;
  std::array<std::atomic<std::uint64_t>, 3> used_ = {};
  std::array<std::atomic<std::uint64_t>, 3> expected_ = {};

  std::mutex mutex_;  // Guards make_room_, and is held while it runs.
  MakeRoom make_room_;
};

// MemoryCharge: bytes that count in a share for as long as this lives. Whoever owns the bytes owns their charge, and sets it
// before the memory is taken.
class MemoryCharge {
 public:
  // So much each connection may hold without asking.
  static constexpr std::uint64_t kUncounted = 4096;

  MemoryCharge() = default;  // Of no budget: nothing is counted.
  MemoryCharge(std::shared_ptr<MemoryBudget> budget, Share share);
  MemoryCharge(MemoryCharge&& other) noexcept;
  MemoryCharge& operator=(MemoryCharge&& other) noexcept;
  MemoryCharge(const MemoryCharge&) = delete;
  MemoryCharge& operator=(const MemoryCharge&) = delete;
  ~MemoryCharge();

  // Counts `bytes` instead of what was counted before. False: it stays as it was, the share is used up.
  bool set(std::uint64_t bytes);
  // What is counted, as a charge of its own; here nothing is left.
  MemoryCharge split();

  std::uint64_t bytes() const { return bytes_; }
  Share share() const { return share_; }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  Share share_ = Share::kStrangers;
  std::uint64_t bytes_ = 0;
};

}  // namespace bide::server
