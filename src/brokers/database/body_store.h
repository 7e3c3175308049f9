// BodyStore: bodies of jobs that are kept apart from the jobs, in another server. A body never changes: another body for a job is
// another one. It is written before its job can be seen, and removed after nobody needs it; what a process that died in
// between left behind is found by the order of the ids.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/job_id.h"
#include "bide/result.h"

namespace bide::brokers::database {

// The bodies of one place where jobs are: several may share a database. Random, never 0, fits 63 bits.
using BodySet = std::int64_t;

// An id of version 7, in milliseconds of the clock of the server that has the bodies.
using BodyId = JobId;
inline std::int64_t written_ms(const BodyId& id) {
  std::int64_t ms = 0;
  for (std::size_t i = 0; i < 6; ++i) ms = ms << 8 | id.bytes()[i];
  return ms;
}
// The least id of that time or a later one.
inline BodyId least_id(std::int64_t ms) {
  std::array<std::uint8_t, BodyId::kSize> bytes{};
  for (std::size_t i = 6; i > 0; ms >>= 8) bytes[--i] = static_cast<std::uint8_t>(ms & 0xff);
  return BodyId(bytes);
}

struct NewBody {
  JobId job = {};
  std::string_view bytes = {};
};

struct WrittenBody {
  BodyId id = {};
  JobId job = {};
};

// One connection. Called by one thread at a time, except interrupt(). Every call blocks.
//
// kUnavailable: nothing was done, and is_broken() may be true. kUnconfirmed: not known. Otherwise the server's own words.
class BodySession {
 public:
  virtual ~BodySession() = default;
  virtual bool is_broken() const = 0;
  virtual void interrupt() = 0;  // From any thread.

  virtual Status add_set(BodySet set) = 0;
  virtual Result<bool> has_set(BodySet set) = 0;

  // Committed when it returns. The ids are in order and not older than `not_before_ms`, whatever the clock says.
  virtual Result<std::vector<BodyId>> write(BodySet set, const std::vector<NewBody>& bodies, std::int64_t not_before_ms) = 0;
  // Those that are there.
  virtual Result<std::map<BodyId, std::string>> read(BodySet set, const std::vector<BodyId>& ids) = 0;
  virtual Status remove(BodySet set, const std::vector<BodyId>& ids) = 0;
  // In order, from the one behind `after`; of those written before `before_ms`. At most so many.
  virtual Result<std::vector<WrittenBody>> list(BodySet set, BodyId after, std::int64_t before_ms, std::size_t limit) = 0;
  virtual Result<std::int64_t> now_ms() = 0;
};

// Safe to share between threads.
class BodyStore {
 public:
  virtual ~BodyStore() = default;
  // A new connection. Creates the tables the first time. Errors as JobStore::connect().
  virtual Result<std::unique_ptr<BodySession>> connect() = 0;
  virtual std::string place() const = 0;  // For messages, without credentials.
};

}  // namespace bide::brokers::database
