#include "metrics/running_attempts.h"

#include <algorithm>

namespace bide::metrics {

void RunningAttempts::add(const JobId& id, const Attempt& attempt) {
  Part& part = part_of(id);
  std::lock_guard lock(part.mutex);
  if (part.attempts.size() >= part.sweep_at) {
    std::erase_if(part.attempts, [&](const auto& each) { return each.second.over_us < attempt.started_us; });
    // Looked through again only when it has doubled, so that each attempt pays for a step or two.
    part.sweep_at = std::max<std::size_t>(256, 2 * part.attempts.size());
  }
  if (part.attempts.size() < most_of_shard_ || part.attempts.contains(id)) part.attempts[id] = attempt;
}

std::optional<RunningAttempts::Attempt> RunningAttempts::take(const LeaseRef& lease) {
  Part& part = part_of(lease.id);
  std::lock_guard lock(part.mutex);
  const auto found = part.attempts.find(lease.id);
  if (found == part.attempts.end() || found->second.token != lease.token) return std::nullopt;
  const Attempt attempt = found->second;
  part.attempts.erase(found);
  return attempt;
}

std::size_t RunningAttempts::size() const {
  std::size_t size = 0;
  for (const Part& part : parts_) {
    std::lock_guard lock(part.mutex);
    size += part.attempts.size();
  }
  return size;
}

}  // namespace bide::metrics
