// state_machine: a job that goes on where it stopped, by saving a new body for its next attempt.
//
// A saved body is durable when save_body returns. What is done before it may be done again, when the process dies in
// between: so each step is one that knows the job's id and does nothing the second time.

#include <iostream>
#include <set>
#include <stdexcept>

#include "bide/bide.h"
#include "bide/json.h"

using namespace std::chrono_literals;

struct Transfer {
  int amount = 0;
  std::string next = "withdraw";
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Transfer, amount, next)

// Real ones take such a key too.
struct Bank {
  std::set<bide::JobId> known;

  void withdraw(int amount, bide::JobId key) {
    if (known.insert(key).second) std::cout << "withdrawing " << amount << std::endl;
  }
};

int main() {
  auto client = bide::Client::open("bide:./state_machine.data").value();

  Bank bank;
  bool other_bank_is_up = false;
  bide::Worker worker(client, {.concurrency = 1});
  worker.handle<Transfer>("transfer", [&](Transfer transfer, bide::Context& context) {
    if (transfer.next == "withdraw") {
      bank.withdraw(transfer.amount, context.job().id);
      transfer.next = "deposit";
      context.save_body(transfer).value();  // From here on no attempt withdraws again, not even after a power loss.
    }
    if (!std::exchange(other_bank_is_up, true)) throw std::runtime_error("the other bank is down");
    std::cout << "depositing " << transfer.amount << " at attempt " << context.attempt() << std::endl;
  });
  worker.start().value();

  auto id = client.enqueue("transfer", Transfer{100}, {.retry = bide::RetryPolicy::fixed(50ms)}).value();
  client.wait_for(id, 10s).value();
}
