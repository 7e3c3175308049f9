// Setup: what a worker was given before it started.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/worker.h"

namespace bide::worker {

struct Setup {
  WorkerOptions options;
  std::vector<std::pair<std::string, Handler>> handlers = {};
  std::vector<Middleware> middleware = {};
  std::function<void(const Finished&)> on_outcome = {};
  std::function<void(const Finished&)> on_dead = {};
  std::function<void(std::string_view)> on_problem = {};

  // kInvalidArgument names the option or the handler.
  Status validate() const;
};

}  // namespace bide::worker
