#include "engine/enqueue_order.h"

#include <algorithm>
#include <utility>

#include "platform/keyed_hash.h"

namespace bide::engine {

EnqueueOrder EnqueueOrder::of(const std::vector<Job>& jobs) {
  EnqueueOrder order{.first_in_circle = jobs.size()};
  if (std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.after.empty(); })) return order;
  platform::KeyedMap<JobId, std::size_t> by_id;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].id.is_nil()) by_id.emplace(jobs[i].id, i);
  }
  std::vector<std::size_t> waits_for(jobs.size());
  std::vector<std::vector<std::size_t>> waiters(jobs.size());
  bool is_ordered = true;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (const JobId& id : jobs[i].after) {
      const auto known = by_id.find(id);
      if (known == by_id.end()) continue;
      ++waits_for[i];
      waiters[known->second].push_back(i);
      is_ordered = is_ordered && known->second < i;
    }
  }
  if (is_ordered) return order;
  std::vector<bool> is_placed(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (waits_for[i] == 0) order.places.push_back(i);
  }
  for (std::size_t next = 0; next < order.places.size(); ++next) {
    is_placed[order.places[next]] = true;
    for (const std::size_t waiter : waiters[order.places[next]]) {
      if (--waits_for[waiter] == 0) order.places.push_back(waiter);
    }
  }
  order.first_in_circle = order.places.size();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!is_placed[i]) order.places.push_back(i);
  }
  return order;
}

void EnqueueOrder::apply(std::vector<Job>& jobs) const {
  if (places.empty()) return;
  std::vector<Job> ordered;
  ordered.reserve(jobs.size());
  for (const std::size_t place : places) ordered.push_back(std::move(jobs[place]));
  jobs = std::move(ordered);
}

Error waits_in_a_circle(const Job& job) {
  return Error{ErrorCode::kInvalidArgument, "after: job " + job.id.to_string() +
                                                " would never run: jobs that it waits for wait for each other, or for itself"};
}

}  // namespace bide::engine
