// Idempotency keys: a request that is sent again with the same key is carried out once.
//
// The key needs no store of its own: it becomes the id of the job (a UUID of version 8 made of a hash of the caller,
// the key and the place in the batch), and the broker takes an id once. The digest of what was sent goes with the job
// as the header bide-request, so that another request with the same key is told from the same one. It holds as long as
// the broker remembers the id.

#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "bide/job_id.h"
#include "platform/keyed_hash.h"
#include "wire/problem.h"

namespace bide::server {

inline constexpr std::size_t kLongestIdempotencyKey = 255;

// 400 when it is too long or not printable.
std::optional<wire::Problem> find_key_problem(std::string_view key);

JobId id_for_key(std::string_view caller, std::string_view key, std::size_t index);
// Ids that stand for a key are not given by hand: otherwise whoever guesses another's key could be there first, and the
// request would pass for carried out.
std::optional<wire::Problem> find_id_problem(const Job& job);

std::string request_digest(std::string_view text);

// What this process knows by itself: which keys are under way, and the digests of recent requests, for jobs of which
// the broker does not keep the headers any more. Safe to share between threads.
class IdempotencyBook {
 public:
  static constexpr std::size_t kRemembered = 100'000;

  // While it lives the key is under way.
  class Turn {
   public:
    Turn(IdempotencyBook& book, const JobId& key) : book_(book), key_(key) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    IdempotencyBook& book_;
    const JobId key_;
  };

  // Null when the same key is under way. `key` is the id of its first job.
  std::unique_ptr<Turn> begin(const JobId& key);
  void remember(const JobId& id, const std::string& digest);
  std::optional<std::string> recall(const JobId& id) const;

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  platform::KeyedSet<JobId> under_way_;
  platform::KeyedMap<JobId, std::string> digests_;
  std::deque<JobId> oldest_;
};

}  // namespace bide::server
