// EmbeddedStore: a real engine in a folder, for the tests of what works on any broker. Whoever uses it links bide_engine.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "engine/engine.h"

namespace bide::support {

class EmbeddedStore {
 public:
  explicit EmbeddedStore(std::string directory, std::uint64_t max_jobs = 1'000'000,
                         std::uint64_t done_limit = 100'000) {
    engine::EngineOptions options{.directory = std::move(directory)};
    options.max_jobs = max_jobs;
    options.done_limit = done_limit;
    engine_ = engine::Engine::open(std::move(options)).value();
  }

  Broker& broker() { return *engine_; }
  Inspector& inspector() { return *engine_; }

 private:
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace bide::support
