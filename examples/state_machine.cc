// state_machine: a job that goes on where it stopped, by saving a new body for its next attempt.

#include <iostream>
#include <stdexcept>

#include "bide/bide.h"
#include "bide/json.h"

using namespace std::chrono_literals;

struct Transfer {
  int amount = 0;
  std::string next = "withdraw";
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Transfer, amount, next)

int main() {
  auto client = bide::Client::open("bide:./state_machine.data").value();

  bool bank_is_up = false;
  bide::Worker worker(client);
  worker.handle<Transfer>("transfer", [&](Transfer transfer, bide::Context& context) {
    if (transfer.next == "withdraw") {
      std::cout << "withdrawing " << transfer.amount << std::endl;
      transfer.next = "deposit";
      context.save_body(transfer);  // From here on a retry does not withdraw again.
    }
    if (!std::exchange(bank_is_up, true)) throw std::runtime_error("the other bank is down");
    std::cout << "depositing " << transfer.amount << " at attempt " << context.attempt() << std::endl;
  });
  worker.start().value();

  auto id = client.enqueue("transfer", Transfer{100}, {.retry = bide::RetryPolicy::fixed(50ms)}).value();
  client.wait_for(id, 10s).value();
}
