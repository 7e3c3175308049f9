// events: one event, two groups. Each of them handles it once, whichever of its workers is free.

#include <future>
#include <iostream>

#include "bide/bide.h"

int main() {
  auto client = bide::Client::open("bide:./events.data").value();
  bide::bind(client, {.queue = "billing", .patterns = {"order.created"}}).value();
  bide::bind(client, {.queue = "audit", .patterns = {"order.#"}}).value();

  // Nobody works yet: the groups keep what is published.
  for (const char* topic : {"order.created", "order.shipped.eu", "weather.rain"}) {
    std::cout << topic << " goes to " << client.publish(topic, "order 42").value().groups << " groups" << std::endl;
  }

  std::promise<void> billed, audited;
  bide::Worker billing(client, {.queues = {"billing"}, .concurrency = 1});
  billing.handle("order.created", [&](const bide::Job& event) {
    std::cout << "billing: " << event.body << std::endl;
    billed.set_value();
  });
  billing.start().value();
  billed.get_future().wait();

  bide::Worker audit(client, {.queues = {"audit"}, .concurrency = 1});
  audit.handle("order.#", [&](const bide::Job& event) {
    std::cout << "audit: " << event.kind << std::endl;
    if (event.kind == "order.shipped.eu") audited.set_value();
  });
  audit.start().value();
  audited.get_future().wait();
}
