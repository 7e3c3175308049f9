// Plan: everything that a deployment needs on the server, and what of it is there already. `bide rabbitmq plan` shows
// it, `apply` declares it.

#pragma once

#include <string>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/examine.h"
#include "brokers/rabbitmq/topology.h"

namespace bide::brokers::rabbitmq {

struct Deployment {
  std::vector<std::string> queues = {};   // bide queues.
  std::vector<Milliseconds> delays = {};  // Each of them exactly.
  Milliseconds every_delay_up_to{0};      // And every one up to this.
};

// The waits of a retry policy. With jitter nobody knows them before: every delay up to the longest one is expected.
void add_waits(Deployment& deployment, const RetryPolicy& policy);

// Where processes declare nothing themselves (declare=no) every delay up to the longest one is included: a wait after a
// crash is random, and what is sent late waits less.
Topology topology_of(const Settings& settings, const Deployment& deployment);

struct PlannedExchange {
  ExchangeSpec spec = {};
  Examined examined = {};
};
struct PlannedQueue {
  QueueSpec spec = {};
  Examined examined = {};
};

struct Plan {
  std::vector<PlannedExchange> exchanges = {};
  std::vector<PlannedQueue> queues = {};
  // AMQP does not show bindings. Making one that is there changes nothing.
  std::vector<BindingSpec> bindings = {};

  std::size_t missing() const;
  std::size_t differing() const;
};

// Nothing is changed.
Result<Plan> make_plan(Examiner& examiner, const Topology& topology);

// Declares what is missing, and every binding, and announces queues that are new. kInvalidArgument: something is there
// with other arguments, in the server's words; nothing was declared.
Status apply_plan(const Settings& settings, Connection& connection, const Plan& plan);

}  // namespace bide::brokers::rabbitmq
