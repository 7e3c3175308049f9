// payment: steps of a handler that are done once, however many attempts it takes.
//
// What a step gave is durable when step() returns. If the process dies within a step, or right behind it, that step is done again:
// so the bank is given a key by which it knows a charge that it has made already.

#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "bide/bide.h"

using namespace std::chrono_literals;

int main() {
  auto client = bide::Client::open("bide:./payment.data").value();

  bool printer_works = false;
  bide::Worker worker(client, {.concurrency = 1});
  worker.handle("pay", [&](const bide::Job& job, bide::Context& context) {
    const std::string receipt = context
                                    .step("charge", [&] {
                                      std::cout << "charging " << job.body << std::endl;  // With the key job.id + ":charge".
                                      return std::string("receipt 7");
                                    })
                                    .value();
    context
        .step("print", [&] {
          if (!std::exchange(printer_works, true)) throw std::runtime_error("the printer is out of paper");
          std::cout << "printing " << receipt << " at attempt " << context.attempt() << std::endl;
        })
        .value();
  });
  worker.start().value();

  const bide::JobId id = client.enqueue("pay", "100 euros", {.retry = bide::RetryPolicy::fixed(10ms)}).value();
  client.wait_for(id, 1min).value();
}
