// delayed: jobs that run later, by a delay or by the clock on the wall. Never early.

#include <iostream>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./delayed.data").value();

  const auto now = std::chrono::floor<bide::Milliseconds>(std::chrono::system_clock::now());
  client.enqueue("remind", "a delay", {.delay = 200ms}).value();
  auto last = client.enqueue("remind", "a time of day", {.due = now + 400ms}).value();
  auto next_year = client.enqueue("remind", "next year", {.delay = 24h * 365}).value();

  bide::Worker worker(client);
  worker.handle("remind", [&](const bide::Job& job, bide::Context& context) {
    const bool early = std::chrono::system_clock::now() < context.due();
    std::cout << "reminded by " << job.body << (early ? ", early" : ", not early") << std::endl;
  });
  worker.start().value();
  client.wait_for(last, 10s).value();

  std::cout << "next year's job is " << to_string(client.find(next_year)->state) << std::endl;
}
