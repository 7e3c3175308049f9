// DemoShop: a shop's evening in jobs. Orders come in, each enqueues its mail and its parcel as effects; the mail server is
// down for a while; a bank wants to be asked three times; one invoice kills whoever renders it; one address is wrong.

#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "bide/client.h"
#include "bide/worker.h"

namespace bide::cli {

struct DemoShopOptions {
  std::chrono::steady_clock::time_point opened;  // The evening's beginning; it outlives a killed worker.
  std::function<void(const std::string& line)> tell;
};

class DemoShop {
 public:
  static constexpr int kOrders = 40;

  DemoShop(Client client, DemoShopOptions options);

  // Everything that is ordered this evening, with its due times. Once for a store.
  Status take_orders();
  // Works until nothing waits and nothing runs. `busy` is called several times a second meanwhile.
  Status work(const std::function<void(const std::vector<QueueInfo>&)>& busy);
  // Puts the wrong address right and replays its job.
  Status correct_address();

 private:
  void set_up(Worker& worker);
  std::chrono::milliseconds since_opening() const;

  Client client_;
  const DemoShopOptions options_;
  bool address_corrected_ = false;
};

}  // namespace bide::cli
