#include "server/api/idempotency.h"

#include <algorithm>

#include "core/quote.h"
#include "core/text.h"
#include "server/http/digest.h"

namespace bide::server {

std::optional<wire::Problem> find_key_problem(std::string_view key) {
  const bool printable = std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (printable && !key.empty() && key.size() <= kLongestIdempotencyKey) return std::nullopt;
  return wire::make_problem("invalid_idempotency_key", "invalid Idempotency-Key " + core::quoted(key) +
                                                           "; allowed: 1 to 255 visible ASCII characters");
}

JobId id_for_key(std::string_view caller, std::string_view key, std::size_t index) {
  std::string text = "bide idempotency key\n";
  // With the length of the caller's name: no two pairs of name and key make the same text.
  text += std::to_string(caller.size()) + "\n" + std::string(caller) + "\n" + std::string(key) + "\n" +
          std::to_string(index);
  return id_from_hash(text);
}

std::optional<wire::Problem> find_id_problem(const Job& job) {
  if (job.id.bytes()[6] >> 4 != 8) return std::nullopt;
  return wire::make_problem("invalid_id",
                            "ids of version 8 stand for an Idempotency-Key here; use another UUID, or such a key", "id");
}

std::string request_digest(std::string_view text) { return core::to_hex(sha256(text).substr(0, 16)); }

IdempotencyTable::KeyLock::~KeyLock() {
  std::lock_guard lock(table_.mutex_);
  table_.under_way_.erase(key_);
}

std::unique_ptr<IdempotencyTable::KeyLock> IdempotencyTable::try_lock(const JobId& key) {
  std::lock_guard lock(mutex_);
  if (!under_way_.insert(key).second) return nullptr;
  return std::make_unique<KeyLock>(*this, key);
}

void IdempotencyTable::add_digest(const JobId& id, const std::string& digest) {
  std::lock_guard lock(mutex_);
  digests_.put(id, digest);  // Replaces that of a job that the broker has forgotten.
}

std::optional<std::string> IdempotencyTable::find_digest(const JobId& id) const {
  std::lock_guard lock(mutex_);
  const std::string* const found = digests_.find(id);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace bide::server
