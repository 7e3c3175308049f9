// Health: how the server is, for whoever watches over it.
//
//   /metrics   what was counted and how the queues are, for Prometheus; wants the scope `read`
//   /healthz   200 while the server answers at all: restart it when it does not
//   /readyz    200 while it can take work; 503 when it stops, or its broker is away or blocked: send it none
//
// The broker is asked once at a time, however many ask us, and one that does not answer keeps nobody waiting for long.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "metrics/metrics.h"
#include "platform/clock.h"
#include "server/http/route.h"

namespace bide::server {

struct HealthOptions {
  std::shared_ptr<Broker> broker;        // Asked for its pressure.
  std::shared_ptr<Inspector> inspector;  // Asked for its queues, where it can be.
  std::shared_ptr<metrics::Metrics> metrics;
  // Asks the outbox, where there is one. The completion may run on any thread.
  std::function<void(std::function<void(const std::optional<metrics::OutboxFigures>&)>)> ask_outbox = {};
  std::string version = {};
  std::string durability = {};       // Not empty: a weaker mode was asked for ("os", "none"), and is shown.
  platform::Clock* clock = nullptr;  // Null: the real one.
};

// The mode that a broker's URL asks for, when it is not the safe one; otherwise empty.
std::string weaker_durability(std::string_view broker_url);

// Safe to use from any thread. The routes keep it alive.
class Health : public std::enable_shared_from_this<Health> {
 public:
  static std::shared_ptr<Health> make(HealthOptions options);
  ~Health();

  Routes routes();
  // Not ready from now on.
  void set_draining();

 private:
  class Probe;
  explicit Health(HealthOptions options);

  void answer_metrics(Reply reply);
  void answer_alive(const Request& request, Reply reply) const;
  void answer_ready(const Request& request, Reply reply);

  const HealthOptions options_;
  platform::Clock& clock_;
  const std::shared_ptr<Probe> probe_;
  std::atomic<bool> draining_ = false;
};

}  // namespace bide::server
