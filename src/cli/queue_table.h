// The queues as a table, for `queue list` and `top`.

#pragma once

#include <string>
#include <vector>

#include "bide/inspector.h"
#include "cli/table.h"

namespace bide::cli {

std::string queue_table(const std::vector<QueueInfo>& queues, Time now);

}  // namespace bide::cli
