// MemoryBudget: how many bytes of bodies and answers the server holds at a time, in shares that cannot use up each other:
//
//   kAnonymous   bodies of and answers to callers without an identity
//   kRequests    bodies of those who are known, until they are answered
//   kAnswers     answers to them that are being made or wait to be read
//
// So clients that do not read keep nobody from enqueuing, and nobody without a token takes what those with one need.
//
// Within a share nobody can use up what others need. A claim that does not fit ends, in this order, connections that wait
// for their client (see Connections::make_room):
//
//   1. transfers that stand still or lag behind HttpLimits::prompt_rate
//   2. those of callers that hold more than their fair part of the share, for a caller that stays within its own
//   3. for a small claim, the larger ones, and then the older ones; for a caller that claims more than its fair part only
//      its own and those of others like it
//
// and the last eighth of a share is for small claims only. What cannot be had so is refused.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace bide::server {

enum class Share : std::uint8_t { kAnonymous, kRequests, kAnswers };

// What one caller holds: somebody who is known by a name, or an anonymous one by its address. A caller can have many connections.
struct MemoryCaller {
  explicit MemoryCaller(std::string key) : name(std::move(key)) {}

  const std::string name;
  std::array<std::atomic<std::uint64_t>, 3> held = {};  // By share.

  std::uint64_t of(Share share) const { return held[static_cast<std::size_t>(share)]; }
};

class MemoryCharge;

struct MemoryClaim {
  // Up to here a claim is small: as much as most requests and answers take.
  static constexpr std::uint64_t kSmall = 256 * 1024;

  Share share = Share::kAnonymous;
  std::uint64_t bytes = 0;                   // More than before.
  std::uint64_t after = 0;                   // All that the charge has then.
  MemoryCaller* caller = nullptr;            // Null: nobody in particular.
  const MemoryCharge* charge = nullptr;

  bool is_small() const { return after <= kSmall; }
};

// Safe to use from any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t most);

  // The account of a caller, the same for the same name as long as somebody keeps it.
  std::shared_ptr<MemoryCaller> caller(std::string_view name);

  // False: the share is used up, and nobody could be made to give enough of it back.
  bool take(const MemoryClaim& claim);
  void give_back(Share share, std::uint64_t bytes, MemoryCaller* caller = nullptr);

  // These bytes are about to be given back, by a connection that was given up: until stop_expecting() they count as free.
  void expect_back(Share share, std::uint64_t bytes);
  void stop_expecting(Share share, std::uint64_t bytes);

  // Asked when a claim does not fit, with the bytes that are missing and the fair part of a caller. True: so many are
  // expected back.
  using MakeRoom = std::function<bool(const MemoryClaim&, std::uint64_t missing, std::uint64_t fair_part)>;
  // The one before is not called any more when this has returned.
  void set_make_room(MakeRoom make_room);

  std::uint64_t held() const;  // Of all shares.
  std::uint64_t limit(Share share) const { return limits_[static_cast<std::size_t>(share)]; }

 private:
  // How much more than there is this claim needs; zero: it was taken.
  std::uint64_t try_take(const MemoryClaim& claim);
  std::uint64_t fair_part(const MemoryClaim& claim);

  const std::array<std::uint64_t, 3> limits_;
  std::array<std::atomic<std::uint64_t>, 3> used_ = {};
  std::array<std::atomic<std::uint64_t>, 3> expected_ = {};

  std::mutex callers_mutex_;  // Guards callers_.
  std::map<std::string, std::weak_ptr<MemoryCaller>, std::less<>> callers_;
  std::size_t sweep_callers_at_ = 64;

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
  MemoryCharge(std::shared_ptr<MemoryBudget> budget, Share share, std::shared_ptr<MemoryCaller> caller = nullptr);
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
  std::shared_ptr<MemoryCaller> caller_;
  Share share_ = Share::kAnonymous;
  std::uint64_t bytes_ = 0;
};

}  // namespace bide::server
