#include "core/job_ids.h"

#include <algorithm>
#include <array>

namespace bide::core {
namespace {

constexpr std::uint32_t kCounterEnd = 1u << 12;

// The year 6429. A clock set beyond is taken for this, which leaves half of the 48 bits for the counter to carry into:
// a broken clock must not make the ids wrap around.
constexpr std::int64_t kLatestMs = (std::int64_t{1} << 47) - 1;

}  // namespace

JobId JobIdSource::next(std::int64_t now_ms, std::uint64_t random) {
  const auto now = static_cast<std::uint64_t>(std::clamp(now_ms, std::int64_t{0}, kLatestMs));
  if (!started_ || now > last_ms_) {
    started_ = true;
    last_ms_ = now;
    counter_ = 0;
  } else if (++counter_ == kCounterEnd) {
    ++last_ms_;
    counter_ = 0;
  }

  const std::uint64_t high = last_ms_ << 16 | 0x7000u | counter_;
  const std::uint64_t low = random >> 2 | std::uint64_t{1} << 63;
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t index = 0; index < 8; ++index) {
    bytes[index] = static_cast<std::uint8_t>(high >> (56 - 8 * index));
    bytes[index + 8] = static_cast<std::uint8_t>(low >> (56 - 8 * index));
  }
  return JobId(bytes);
}

}  // namespace bide::core
