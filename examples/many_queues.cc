// many_queues: one worker for several queues, which share it in proportion to their weights.

#include <iostream>
#include <mutex>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./many_queues.data").value();

  bide::JobId last;
  for (int i = 0; i < 8; ++i) {
    client.enqueue("work", "urgent", {.queue = "urgent"}).value();
    last = client.enqueue("work", "bulk", {.queue = "bulk"}).value();
  }

  // Three urgent jobs for each of the others, while there are both. One at a time, so that the order can be seen.
  bide::Worker worker(client, {.queues = {{"urgent", 3}, {"bulk", 1}}, .concurrency = 1, .credit = 1});
  worker.handle("work", [](const std::string& queue) { std::cout << queue << ' ' << std::flush; });
  worker.start().value();
  client.wait_for(last, 10s).value();
  std::cout << std::endl;
}
