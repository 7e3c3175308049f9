// coroutines: ten thousand handlers that wait, on two threads.

#include <chrono>
#include <iostream>
#include <vector>

#include "bide/bide.h"

using namespace std::chrono_literals;

// What is awaited may be a function of your own that awaits in turn.
bide::Task<std::string> ask_twice(bide::Context& context, std::string question) {
  const bide::RequestOptions patient{.timeout = 60s};
  auto answer = co_await context.request_awaitable<std::string>("oracle", question, patient);
  if (!answer) answer = co_await context.request_awaitable<std::string>("oracle", question, patient);
  co_return answer.value();
}

int main() {
  auto client = bide::Client::open("bide:./coroutines.data").value();

  bide::Worker worker(client, {.concurrency = 2, .credit = 10'000});
  worker.handle("wait", [](bide::Context& context) -> bide::Task<> {
    (void)co_await context.sleep(1s);  // No thread waits. False: asked to stop.
  });
  worker.reply("oracle", [](const std::string& question, bide::Context& context) -> bide::Task<std::string> {
    (void)co_await context.sleep(5ms);
    co_return question.size() % 2 == 0 ? "yes" : "no";
  });
  worker.reply("ask", [](const std::string& body, bide::Context& context) -> bide::Task<std::string> {
    co_return co_await ask_twice(context, body);
  });

  std::vector<bide::Job> jobs(10'000, bide::Job{.kind = "wait"});
  for (const auto& accepted : client.enqueue(std::move(jobs))) (void)accepted.value();
  worker.start().value();
  // Beside those, on the same two threads.
  std::cout << "will it rain? " << client.request<std::string>("ask", "will it rain?", {.timeout = 60s}).get().value()
            << std::endl;
  while (worker.stats().done < 10'002) std::this_thread::sleep_for(10ms);
  std::cout << "10000 handlers have waited" << std::endl;
}
