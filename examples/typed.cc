// typed: bodies of a type of your own, as JSON.

#include <iostream>

#include "bide/bide.h"
#include "bide/json.h"

using namespace std::chrono_literals;

struct Resize {
  std::string file;
  int width = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Resize, file, width)

int main() {
  auto client = bide::Client::open("bide:./typed.data").value();

  bide::Worker worker(client, {.queues = {"images"}});
  worker.handle<Resize>("resize", [](const Resize& job) {
    std::cout << "resizing " << job.file << " to " << job.width << " pixels" << std::endl;
  });
  worker.start().value();

  auto good = client.enqueue("resize", Resize{"cat.png", 640}, {.queue = "images"}).value();
  client.wait_for(good, 10s).value();

  // Somebody else's mistake goes to the dead set, with the reason, instead of being tried again and again.
  auto bad = client.enqueue("resize", R"({"file": "dog.png"})", {.queue = "images"}).value();
  std::cout << "dead: " << client.wait_for(bad, 10s)->history.back().text << std::endl;
}
