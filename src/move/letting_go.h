// Letting go: the source forgets what the target has confirmed. A job that was started at the source meanwhile, because
// somebody resumed its queue, stays there, and its copy is taken back.

#pragma once

#include <vector>

#include "bide/inspector.h"
#include "move/transfer.h"

namespace bide::move {

// Of the fates as hand_over() gave them. Counts what has moved. How many the source has let go of.
Result<std::size_t> let_go(const Endpoint& from, const std::vector<JobInfo>& jobs,
                           const std::vector<Transfer::Fate>& fates, Transfer& transfer);

}  // namespace bide::move
