// A job as it is stored: one string, whose layout is described in scripts/common.lua. Clients write the parts that never
// change, scripts change the fixed fields and the tail, clients read all of it.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bide/inspector.h"
#include "bide/job.h"
#include "bide/result.h"

namespace bide::brokers::redis {

// Everything behind the due time and the place, which the server gives it.
std::string encode_new_job(const Job& job);

struct StoredJob {
  static constexpr std::uint8_t kCancelRequested = 1;

  JobInfo info = {};  // Without the worker's name.
  std::uint64_t place = 0;
  std::uint64_t token = 0;
  std::uint8_t flags = 0;
  std::string client = {};
  std::uint16_t worker = 0;  // Its number with the client.
  std::uint8_t unheard = 0;
};

// `now` tells scheduled from ready. `has_body` is false where the string was read without it.
//
// kDamaged: it is not such a string.
Result<StoredJob> decode_job(const JobId& id, std::string_view bytes, std::int64_t now_ms, bool has_body);

}  // namespace bide::brokers::redis
