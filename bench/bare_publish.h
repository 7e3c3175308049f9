// BarePublisher: confirmed publishes with the client library alone, as fast as a plain loop makes them. What bide's own
// rate is held against; see `bide bench broker`.
//
// 200-byte persistent messages to a quorum queue of its own, through the default exchange, up to a window of
// unconfirmed ones. The queue is emptied after each run and deleted at the end.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"

namespace bide::bench {

class BarePublisher {
 public:
  // kUnsupported: with amqps.
  static Result<std::unique_ptr<BarePublisher>> open(const brokers::rabbitmq::Settings& settings, std::string queue);
  ~BarePublisher();

  // Publishes and waits for all confirms. Messages a second.
  Result<double> run(std::uint64_t messages, std::uint32_t window);
  // One at a time: how long each took.
  Result<std::vector<double>> single_us(int messages);

 private:
  struct State;
  explicit BarePublisher(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace bide::bench
