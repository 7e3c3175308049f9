// The engine as users get it, in a directory.

#pragma once

#include <memory>
#include <string>

#include "bide/result.h"
#include "engine/engine.h"

namespace bide::bench {

inline Result<std::unique_ptr<engine::Engine>> open_engine(const std::string& directory) {
  engine::EngineOptions options;
  options.directory = directory;
  return engine::Engine::open(std::move(options));
}

}  // namespace bide::bench
