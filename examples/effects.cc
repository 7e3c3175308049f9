// effects: what a handler enqueues becomes real together with its outcome, or not at all.

#include <iostream>
#include <stdexcept>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./effects.data").value();

  bide::JobId shipping;
  bide::Worker worker(client);
  worker.handle("order", [&](const bide::Job& job, bide::Context& context) {
    shipping = context.enqueue("ship", job.body).value();
    // The first attempt fails after it has asked for a parcel: there is no parcel.
    if (context.attempt() == 1) throw std::runtime_error("the card was declined");
  });
  worker.handle("ship", [](const std::string& order) { std::cout << "shipping " << order << std::endl; });
  worker.start().value();

  auto id = client.enqueue("order", "order 42", {.retry = bide::RetryPolicy::fixed(50ms)}).value();
  client.wait_for(id, 10s).value();
  client.wait_for(shipping, 10s).value();
}
