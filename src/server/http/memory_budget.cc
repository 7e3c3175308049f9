#include "server/http/memory_budget.h"

#include <utility>

#include "platform/fatal.h"

namespace bide::server {

MemoryBudget::MemoryBudget(std::uint64_t most) : limits_{most / 16, most / 2 - most / 16, most / 2} {}

bool MemoryBudget::take(Share share, std::uint64_t bytes) {
  const auto at = static_cast<std::size_t>(share);
  const std::uint64_t most = limit(share);
  // What does not fit is not counted meanwhile: it must not be the reason why others are refused.
  const auto fits = [&] {
    std::uint64_t before = used_[at];
    while (before + bytes <= most + expected_[at]) {
      if (used_[at].compare_exchange_weak(before, before + bytes)) return true;
    }
    return false;
  };
  if (fits()) return true;
  if (bytes > most) return false;
  const std::lock_guard lock(mutex_);
  if (fits()) return true;
  if (!make_room_ || !make_room_(share, bytes)) return false;
  used_[at] += bytes;
  return true;
}

void MemoryBudget::give_back(Share share, std::uint64_t bytes) {
  const std::uint64_t before = used_[static_cast<std::size_t>(share)].fetch_sub(bytes);
  platform::require(before >= bytes, "no more memory is given back than was taken");
}

void MemoryBudget::expect_back(Share share, std::uint64_t bytes) { expected_[static_cast<std::size_t>(share)] += bytes; }

void MemoryBudget::expect_no_more(Share share, std::uint64_t bytes) {
  const std::uint64_t before = expected_[static_cast<std::size_t>(share)].fetch_sub(bytes);
  platform::require(before >= bytes, "no more memory has come back than was expected");
}

void MemoryBudget::set_make_room(MakeRoom make_room) {
  const std::lock_guard lock(mutex_);
  make_room_ = std::move(make_room);
}

std::uint64_t MemoryBudget::held() const {
  std::uint64_t all = 0;
  for (const auto& used : used_) all += used;
  return all;
}

MemoryCharge::MemoryCharge(std::shared_ptr<MemoryBudget> budget, Share share) : budget_(std::move(budget)), share_(share) {}

MemoryCharge::MemoryCharge(MemoryCharge&& other) noexcept
    : budget_(std::move(other.budget_)), share_(other.share_), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryCharge& MemoryCharge::operator=(MemoryCharge&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(share_, other.share_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryCharge::~MemoryCharge() { set(0); }

bool MemoryCharge::set(std::uint64_t bytes) {
  const std::uint64_t counted = bytes <= kUncounted ? 0 : bytes;
  if (!budget_ || counted == bytes_) return true;
  if (counted > bytes_) {
    if (!budget_->take(share_, counted - bytes_)) return false;
  } else {
    budget_->give_back(share_, bytes_ - counted);
  }
  bytes_ = counted;
  return true;
}

MemoryCharge MemoryCharge::split() {
  MemoryCharge all(budget_, share_);
  std::swap(all.bytes_, bytes_);
  return all;
}

}  // namespace bide::server
