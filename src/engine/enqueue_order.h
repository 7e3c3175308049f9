// EnqueueOrder: the jobs of one call in an order in which none comes before those that it waits for. So a job is there when
// another begins to wait for it, and what waits in a circle is found.

#pragma once

#include <cstddef>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"

namespace bide::engine {

struct EnqueueOrder {
  static EnqueueOrder of(const std::vector<Job>& jobs);
  void apply(std::vector<Job>& jobs) const;

  std::vector<std::size_t> places = {};  // Where each job was; empty: they stay as they are.
  // In the new order, the first of those that wait for one another, or for such jobs; the number of jobs if there are none.
  std::size_t first_in_circle = 0;
};

Error waits_in_a_circle(const Job& job);

}  // namespace bide::engine
