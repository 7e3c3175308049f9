// hello: one job, one handler.

#include <iostream>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./hello.data").value();

  bide::Worker worker(client);
  worker.handle("greet", [](const std::string& name) { std::cout << "hello, " << name << std::endl; });
  worker.start().value();

  // Durable when it returns: from here on it runs at least once, whatever happens to this process.
  auto id = client.enqueue("greet", "world").value();

  return client.wait_for(id, 10s)->state == bide::JobState::kDone ? 0 : 1;
}
