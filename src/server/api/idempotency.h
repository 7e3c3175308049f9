// Idempotency keys: a request that is sent again with the same key is carried out once.
//
// Nothing is stored for a key: the id of the job is derived from it (a UUID of version 8, a hash of the caller, the key
// and the index in the batch), and the broker takes an id once. A digest of the request is kept in the job's header
// bide-request, to detect another request with the same key. All of this holds as long as the broker remembers the id.

#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "bide/job_id.h"
#include "platform/keyed_hash.h"
#include "server/api/recent_map.h"
#include "wire/problem.h"

namespace bide::server {

inline constexpr std::size_t kLongestIdempotencyKey = 255;

// invalid_idempotency_key: too long, or not printable.
std::optional<wire::Problem> find_key_problem(std::string_view key);

JobId id_for_key(std::string_view caller, std::string_view key, std::size_t index);
// Clients may not give ids of version 8: whoever guesses another's key could enqueue its id first, and the request would
// seem to be carried out.
std::optional<wire::Problem> find_id_problem(const Job& job);

std::string request_digest(std::string_view text);

// Keys under way, and the digests of recent requests, for jobs whose headers the broker has dropped. Of this process
// only. Safe to share between threads.
class IdempotencyTable {
 public:
  static constexpr std::size_t kRemembered = 100'000;

  // Holds the key until it is destroyed.
  class KeyLock {
   public:
    KeyLock(IdempotencyTable& table, const JobId& key) : table_(table), key_(key) {}
    KeyLock(const KeyLock&) = delete;
    KeyLock& operator=(const KeyLock&) = delete;
    ~KeyLock();

   private:
    IdempotencyTable& table_;
    const JobId key_;
  };

  // Null when a request with the same key is under way. `key` is the id of its first job.
  std::unique_ptr<KeyLock> try_lock(const JobId& key);
  void add_digest(const JobId& id, const std::string& digest);
  std::optional<std::string> find_digest(const JobId& id) const;

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  platform::KeyedSet<JobId> under_way_;
  RecentMap<JobId, std::string> digests_{kRemembered};
};

}  // namespace bide::server
