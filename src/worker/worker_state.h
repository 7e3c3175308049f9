// WorkerState: what is behind a Worker.

#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "bide/client.h"
#include "bide/worker.h"
#include "worker/crew.h"
#include "worker/setup.h"

namespace bide::worker {

struct WorkerState {
  WorkerState(Client given, Setup first) : client(std::move(given)), setup(std::move(first)) {}

  Client client;
  Setup setup;  // Does not change while a crew is at work.

  std::mutex mutex;  // Guards everything below.
  std::condition_variable changed;
  std::shared_ptr<Crew> crew;  // Null: not running.
  WorkerStats last_stats;      // Of the crew before.
  bool stop_requested = false;  // A stop that comes before run() ends it at once.
};

}  // namespace bide::worker
