// Enqueues a job and runs it: plain DIRECTORY.

#include <bide/bide.h>

#include <iostream>
#include <string>

int main(int, char** arguments) {
  auto client = bide::Client::open("bide:" + std::string(arguments[1])).value();
  client.enqueue("greet", "world").value();

  bide::Worker worker(client);
  worker.handle("greet", [&worker](const std::string& name) {
    std::cout << "hello, " << name << std::endl;
    worker.stop();
  });
  return worker.run();
}
