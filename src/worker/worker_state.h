// WorkerState: what is behind a Worker.

#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "bide/client.h"
#include "bide/worker.h"
#include "worker/handler_threads.h"
#include "worker/setup.h"

namespace bide::worker {

struct WorkerState {
  WorkerState(Client given, Setup first) : client(std::move(given)), setup(std::move(first)) {}

  Client client;
  Setup setup;  // Does not change while there are threads.

  std::mutex mutex;  // Guards everything below.
  std::condition_variable changed;
  std::shared_ptr<HandlerThreads> threads;  // Null: not running.
  WorkerStats last_stats;                   // Of the threads before.
  std::optional<Error> failure;             // The broker refuses the worker.
  bool in_run = false;                      // run() waits, and tells about the failure.
  bool stop_requested = false;              // A stop that comes before run() ends it at once.
};

}  // namespace bide::worker
