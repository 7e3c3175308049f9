#include "metrics/running_attempts.h"

#include <algorithm>
#include <utility>

namespace bide::metrics {

namespace {

void end(const RunningAttempts::Attempt& attempt) {
  if (attempt.worker) attempt.worker->ended();
}

}  // namespace

bool RunningAttempts::add(const JobId& id, const Attempt& attempt) {
  Part& part = part_of(id);
  std::lock_guard lock(part.mutex);
  if (part.attempts.size() >= part.sweep_at) {
    std::erase_if(part.attempts, [&](const auto& each) {
      const bool over = each.second.over_us < attempt.started_us;
      if (over) end(each.second);
      return over;
    });
    // Looked through again only when it has doubled, so that each attempt pays for a step or two.
    part.sweep_at = std::max<std::size_t>(256, 2 * part.attempts.size());
  }
  const auto found = part.attempts.find(id);
  if (found != part.attempts.end()) {
    end(found->second);
    found->second = attempt;
    return true;
  }
  return part.attempts.size() < most_of_shard_ && part.attempts.emplace(id, attempt).second;
}

std::optional<RunningAttempts::Attempt> RunningAttempts::take(const LeaseRef& lease) {
  Part& part = part_of(lease.id);
  std::lock_guard lock(part.mutex);
  const auto found = part.attempts.find(lease.id);
  if (found == part.attempts.end() || found->second.token != lease.token) return std::nullopt;
  Attempt attempt = std::move(found->second);
  part.attempts.erase(found);
  end(attempt);
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
