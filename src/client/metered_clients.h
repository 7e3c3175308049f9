// MeteredClients: the clients of this process whose jobs are counted, and what was counted of all of them.

#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "brokers/open_broker.h"
#include "metrics/metrics.h"

namespace bide::client {

class MeteredClients {
 public:
  // Of the whole process, for as long as it lives.
  static MeteredClients& instance();

  // Opens the broker, with its commits and what goes through it counted.
  Result<brokers::OpenedBroker> open(std::string_view url);
  std::string text(Milliseconds patience);

 private:
  struct Opened {
    std::weak_ptr<Broker> broker;
    std::weak_ptr<Inspector> inspector;
  };

  const std::shared_ptr<metrics::Metrics> metrics_ = std::make_shared<metrics::Metrics>();
  std::mutex mutex_;  // Guards everything below.
  std::vector<Opened> opened_;
};

}  // namespace bide::client
