#include "server/http/memory_budget.h"

#include <algorithm>
#include <utility>

#include "platform/fatal.h"

namespace bide::server {

namespace {

// What was freed for a claim can be taken by another before it.
constexpr int kTries = 3;

}  // namespace

MemoryBudget::MemoryBudget(std::uint64_t most) : limits_{most / 16, most / 2 - most / 16, most / 2} {}

std::shared_ptr<MemoryCaller> MemoryBudget::caller(std::string_view name) {
  const std::lock_guard lock(callers_mutex_);
  const auto known = callers_.find(name);
  if (auto account = known == callers_.end() ? nullptr : known->second.lock()) return account;
  auto account = std::make_shared<MemoryCaller>(std::string(name));
  callers_.insert_or_assign(account->name, account);
  if (callers_.size() >= sweep_callers_at_) {
    std::erase_if(callers_, [](const auto& each) { return each.second.expired(); });
    sweep_callers_at_ = std::max<std::size_t>(64, 2 * callers_.size());
  }
  return account;
}

std::uint64_t MemoryBudget::try_take(const MemoryClaim& claim) {
  const auto at = static_cast<std::size_t>(claim.share);
  const std::uint64_t whole = limit(claim.share);
  const std::uint64_t most = claim.is_small() ? whole : whole - whole / 8;
  // What does not fit is not counted meanwhile: it must not be the reason why others are refused.
  std::uint64_t before = used_[at];
  std::uint64_t room = most + expected_[at];
  while (before + claim.bytes <= room) {
    if (used_[at].compare_exchange_weak(before, before + claim.bytes)) {
      if (claim.caller != nullptr) claim.caller->held[at] += claim.bytes;
      return 0;
    }
    room = most + expected_[at];
  }
  return before + claim.bytes - room;
}

// Callers that hold nothing of the share have no part of it.
std::uint64_t MemoryBudget::fair_part(const MemoryClaim& claim) {
  std::uint64_t holding = 1;  // The one who claims.
  const std::lock_guard lock(callers_mutex_);
  for (const auto& [name, known] : callers_) {
    const auto account = known.lock();
    if (account && account.get() != claim.caller && account->of(claim.share) > 0) ++holding;
  }
  return limit(claim.share) / holding;
}

bool MemoryBudget::take(const MemoryClaim& claim) {
  if (try_take(claim) == 0) return true;
  if (claim.bytes > limit(claim.share)) return false;
  const std::lock_guard lock(mutex_);
  for (int tries = 0; tries < kTries; ++tries) {
    const std::uint64_t missing = try_take(claim);
    if (missing == 0) return true;
    if (!make_room_ || !make_room_(claim, missing, fair_part(claim))) return false;
  }
  return try_take(claim) == 0;
}

void MemoryBudget::give_back(Share share, std::uint64_t bytes, MemoryCaller* caller) {
  const auto at = static_cast<std::size_t>(share);
  platform::require(used_[at].fetch_sub(bytes) >= bytes, "no more memory is given back than was taken");
  if (caller == nullptr) return;
  platform::require(caller->held[at].fetch_sub(bytes) >= bytes, "no caller gives back more memory than it took");
}

void MemoryBudget::expect_back(Share share, std::uint64_t bytes) { expected_[static_cast<std::size_t>(share)] += bytes; }

void MemoryBudget::stop_expecting(Share share, std::uint64_t bytes) {
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

MemoryCharge::MemoryCharge(std::shared_ptr<MemoryBudget> budget, Share share, std::shared_ptr<MemoryCaller> caller)
    : budget_(std::move(budget)), caller_(std::move(caller)), share_(share) {}

MemoryCharge::MemoryCharge(MemoryCharge&& other) noexcept
    : budget_(std::move(other.budget_)),
      caller_(std::move(other.caller_)),
      share_(other.share_),
      bytes_(std::exchange(other.bytes_, 0)) {}

MemoryCharge& MemoryCharge::operator=(MemoryCharge&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(caller_, other.caller_);
  std::swap(share_, other.share_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryCharge::~MemoryCharge() { set(0); }

bool MemoryCharge::set(std::uint64_t bytes) {
  const std::uint64_t counted = bytes <= kUncounted ? 0 : bytes;
  if (!budget_ || counted == bytes_) return true;
  if (counted > bytes_) {
    const MemoryClaim claim{
        .share = share_, .bytes = counted - bytes_, .after = counted, .caller = caller_.get(), .charge = this};
    if (!budget_->take(claim)) return false;
  } else {
    budget_->give_back(share_, bytes_ - counted, caller_.get());
  }
  bytes_ = counted;
  return true;
}

MemoryCharge MemoryCharge::split() {
  MemoryCharge all(budget_, share_, caller_);
  std::swap(all.bytes_, bytes_);
  return all;
}

}  // namespace bide::server
