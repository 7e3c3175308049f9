// An API that allows ten calls a second to each customer. The limit is a rule of the queue, for all workers together: a customer
// with many calls waits for its own limit, and for nobody else.

#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "bide/bide.h"

using namespace std::chrono_literals;

namespace {

constexpr int kCallsOfAcme = 25;

}  // namespace

int main() {
  bide::Client client = bide::Client::open("bide:./data").value();
  bide::wait<void>([&](auto done) {
    client.inspector().put_rules(
        {.queue = "calls", .group_rate = {.count = 10, .period = 1s, .burst = 10}, .fair = true}, std::move(done));
  }).value();

  std::atomic<int> calls_of_acme = 0;
  bide::Worker worker(client, {.queues = {"calls"}});
  worker.handle("call", [&](const bide::Job& job) {
    if (job.group == "acme") {
      ++calls_of_acme;
    } else {
      std::cout << job.group + " is served while acme waits: " + (calls_of_acme < kCallsOfAcme ? "yes\n" : "no\n") << std::flush;
    }
  });
  worker.start().value();

  // The customer with many calls comes first.
  const auto begin = std::chrono::steady_clock::now();
  std::vector<bide::Job> calls(kCallsOfAcme, {.kind = "call", .queue = "calls", .group = "acme"});
  calls.push_back({.kind = "call", .queue = "calls", .group = "globex"});
  const bide::JobId last = client.enqueue(std::move(calls))[kCallsOfAcme - 1].value();

  const bide::Explanation why =
      bide::wait<bide::Explanation>([&](auto done) { client.inspector().explain(last, std::move(done)); }).value();
  std::cout << why.text + "\n" << std::flush;

  client.wait_for(last, 60s).value();
  // Ten at once, and the other fifteen at ten a second.
  const bool slow = std::chrono::steady_clock::now() - begin > 1s;
  std::cout << calls_of_acme << " calls of acme were made, in more than a second: " << (slow ? "yes" : "no") << std::endl;
  worker.stop();
  return 0;
}
