// request: ask a worker, and wait for its reply.

#include <iostream>
#include <stdexcept>

#include "bide/bide.h"
#include "bide/json.h"

using namespace std::chrono_literals;

struct Numbers {
  int a = 0;
  int b = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Numbers, a, b)

int main() {
  auto client = bide::Client::open("bide:./request.data").value();

  bide::Worker worker(client, {.concurrency = 2});
  worker.reply<Numbers>("add", [](const Numbers& numbers) { return numbers.a + numbers.b; });
  worker.reply<Numbers>("divide", [](const Numbers& numbers) {
    if (numbers.b == 0) throw std::invalid_argument("by zero");
    return numbers.a / numbers.b;
  });
  worker.start().value();

  // A future: many may be under way.
  auto sum = client.request<int>("add", Numbers{2, 40}, {.timeout = 30s});
  auto quotient = client.request<int>("divide", Numbers{1, 0}, {.timeout = 30s});
  std::cout << "2 + 40 = " << sum.get().value() << std::endl;
  if (const auto result = quotient.get(); !result && result.error().code == bide::ErrorCode::kHandlerFailed) {
    std::cout << "refused: " << result.error().message << std::endl;
  }

  // Nobody has a handler for it.
  const auto nobody = client.request("subtract", "", {.timeout = 100ms}).get();
  if (!nobody && nobody.error().code == bide::ErrorCode::kTimedOut) std::cout << "no reply in time" << std::endl;
}
