#include "server/api/idempotency.h"

#include <algorithm>
#include <array>

#include "core/quote.h"
#include "server/api/digest.h"

namespace bide::server {

std::optional<wire::Problem> find_key_problem(std::string_view key) {
  const bool printable = std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (printable && !key.empty() && key.size() <= kLongestIdempotencyKey) return std::nullopt;
  return wire::make_problem("invalid_idempotency_key", "invalid Idempotency-Key " + core::quoted(key) +
                                                           "; allowed: 1 to 255 visible ASCII characters");
}

JobId id_for_key(std::string_view caller, std::string_view key, std::size_t index) {
  std::string text = "bide idempotency key\n";
  // The caller's name comes with its length: no name and key together can pass for another pair.
  text += std::to_string(caller.size()) + "\n" + std::string(caller) + "\n" + std::string(key) + "\n" +
          std::to_string(index);
  const Digest digest = sha256(text);
  std::array<std::uint8_t, JobId::kSize> bytes{};
  std::copy_n(digest.begin(), bytes.size(), bytes.begin());
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x80);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  return JobId(bytes);
}

std::optional<wire::Problem> find_id_problem(const Job& job) {
  if (job.id.bytes()[6] >> 4 != 8) return std::nullopt;
  return wire::make_problem("invalid_id",
                            "ids of version 8 stand for an Idempotency-Key here; use another UUID, or such a key", "id");
}

std::string request_digest(std::string_view text) { return hex(sha256(text), 16); }

IdempotencyBook::Turn::~Turn() {
  std::lock_guard lock(book_.mutex_);
  book_.under_way_.erase(key_);
}

std::unique_ptr<IdempotencyBook::Turn> IdempotencyBook::begin(const JobId& key) {
  std::lock_guard lock(mutex_);
  if (!under_way_.insert(key).second) return nullptr;
  return std::make_unique<Turn>(*this, key);
}

void IdempotencyBook::remember(const JobId& id, const std::string& digest) {
  std::lock_guard lock(mutex_);
  // A key whose job was forgotten may stand for another request by now.
  if (!digests_.insert_or_assign(id, digest).second) return;
  oldest_.push_back(id);
  if (oldest_.size() <= kRemembered) return;
  digests_.erase(oldest_.front());
  oldest_.pop_front();
}

std::optional<std::string> IdempotencyBook::recall(const JobId& id) const {
  std::lock_guard lock(mutex_);
  const auto found = digests_.find(id);
  if (found == digests_.end()) return std::nullopt;
  return found->second;
}

}  // namespace bide::server
