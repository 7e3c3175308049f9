// steps: a schedule of retries, carried by the job itself.

#include <iostream>
#include <stdexcept>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./steps.data").value();

  bide::Worker worker(client);
  worker.handle("charge", [](bide::Context& context) {
    std::cout << "attempt " << context.attempt() << std::endl;
    if (context.attempt() < 3) throw std::runtime_error("the bank does not answer");
  });
  worker.start().value();

  // In earnest the steps would be 10s, 100s, 1h, 2h, 10h.
  auto id = client.enqueue("charge", "order 42", {.retry = bide::RetryPolicy::steps({50ms, 100ms, 200ms})}).value();

  const auto charged = client.wait_for(id, 10s).value();
  std::cout << to_string(charged.state) << " after " << charged.attempts << " attempts" << std::endl;
}
