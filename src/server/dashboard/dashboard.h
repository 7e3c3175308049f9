// Dashboard: the page at / and what it needs besides the API: signing in, counts over time, workers.
//
// The page is files in web/, compiled into the program. It asks the routes under /v1 like everybody else, and may do what its
// caller may.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bide/broker.h"
#include "metrics/metered_broker.h"
#include "platform/clock.h"
#include "server/auth/authenticator.h"
#include "server/http/route.h"

namespace bide::server {

struct DashboardOptions {
  std::shared_ptr<metrics::MeteredBroker> broker;  // What goes through it is counted.
  Authenticator* authenticator = nullptr;          // Must outlive every request under way. Null: nobody signs in.
  std::string version = {};
  std::string broker_url = {};
  std::string durability = {};   // Empty: the broker decides.
  bool secure_cookies = false;   // The server speaks TLS.
  std::function<void(const Identity& caller, const Request& request)> on_signed_in = {};
  platform::Clock* clock = nullptr;  // Null: the real one.
};

class Dashboard {
 public:
  explicit Dashboard(DashboardOptions options);

  // The page, and its files.
  Routes pages() const;
  // Under /v1. They keep what they need alive.
  Routes routes() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace bide::server
