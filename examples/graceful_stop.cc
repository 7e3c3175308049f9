// graceful_stop: on SIGTERM a worker takes no more jobs, lets its handlers finish, and gives back the rest uncharged.

#include <csignal>
#include <iostream>
#include <thread>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./graceful_stop.data").value();
  for (int i = 0; i < 100; ++i) client.enqueue("work", "").value();

  bide::Worker worker(client, {.concurrency = 2, .credit = 20, .grace = 5s});
  worker.handle("work", [](bide::Context& context) {
    if (!context.stopping()) std::raise(SIGTERM);  // As `kill` or a service manager would.
    std::this_thread::sleep_for(100ms);            // Finished all the same: there is time.
  });

  const int code = worker.run();  // Until the signal.

  const bide::WorkerStats stats = worker.stats();
  std::cout << "exit code " << code << ", " << stats.started << " started, " << stats.done << " done, "
            << stats.returned << " given back" << std::endl;
  return stats.started == stats.done ? code : 1;
}
