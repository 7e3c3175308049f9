// results: what a job came to, for whoever waits for it.

#include <iostream>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./results.data").value();

  bide::Worker worker(client);
  worker.handle("length", [](const std::string& text, bide::Context& context) -> bide::Outcome {
    if (text.empty()) return bide::dead("there is no text");
    context.set_result(std::to_string(text.size()), "text/plain");
    return bide::Done{};
  });
  worker.start().value();

  for (const char* text : {"four", ""}) {
    auto id = client.enqueue("length", text).value();
    const auto job = client.wait_for(id, 10s).value();
    if (job.state == bide::JobState::kDone) std::cout << "result: " << job.result << std::endl;
    if (job.state == bide::JobState::kDead) std::cout << "dead: " << job.history.back().text << std::endl;
  }
}
