// testing: handlers on the real engine in virtual time. Three hours pass in no time.

#include <iostream>
#include <stdexcept>

#include "bide/bide.h"
#include "bide/testing.h"

using namespace std::chrono_literals;

bool mail_server_up = false;

// The function that the program itself calls, too.
void register_handlers(bide::Worker& worker) {
  worker.handle("send_invoice", [](const std::string& number) {
    if (!mail_server_up) throw std::runtime_error("connection refused");
    std::cout << "invoice " << number << " sent" << std::endl;
  });
}

bool check(bool holds, const char* what) {
  std::cout << (holds ? "ok: " : "FAILED: ") << what << std::endl;
  return holds;
}

int main() {
  bide::testing::Kit kit;
  register_handlers(kit.worker());
  auto id = kit.client().enqueue("send_invoice", "42", {.delay = 3h}).value();

  bool ok = check(kit.run_due() == 0, "it is not due yet");
  kit.advance(3h);
  ok &= check(kit.run_due() == 1, "it is due after three hours");
  ok &= check(kit.failed().at(0).history.back().text == "connection refused", "it failed, and says why");

  mail_server_up = true;
  kit.play(1h);  // An hour, with everything that falls due in it.
  ok &= check(kit.find(id).state == bide::JobState::kDone, "it was tried again");
  return ok ? 0 : 1;
}
