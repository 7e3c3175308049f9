// JobIdSource: makes job ids that sort in the order in which they were made.
//
// UUIDs of version 7 (RFC 9562), with a counter where the standard leaves the choice:
//
//    48 bits           4     12 bits    2     62 bits
//   +-----------------+---+-----------+----+------------------+
//   | Unix time in ms | 7 |  counter  | 10 |  random          |
//   +-----------------+---+-----------+----+------------------+
//
// Within one millisecond, or while the clock is behind the latest id, the counter goes up; when it is full the time in
// the id moves on by one millisecond instead. So the time in an id may be ahead of the clock that was given.

#pragma once

#include <cstdint>

#include "bide/job_id.h"

namespace bide::core {

// One owner, no lock. Two sources are kept apart by the random bits only.
class JobIdSource {
 public:
  // Greater than every id this source made before, whatever the clock does. Times before 1970 count as 1970.
  JobId next(std::int64_t now_ms, std::uint64_t random);

 private:
  std::uint64_t last_ms_ = 0;
  std::uint32_t counter_ = 0;
  bool started_ = false;
};

}  // namespace bide::core
