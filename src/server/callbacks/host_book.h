// HostBook: the lines of the hosts that deliveries go to, and who waits in them. Bounded: of more hosts than it may
// have, the one that has been quiet for longest is forgotten.

#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "platform/keyed_hash.h"
#include "server/callbacks/host_line.h"

namespace bide::server {

class HeldDelivery;

struct Host {
  explicit Host(const HostLimits& limits) : line(limits) {}

  HostLine line;
  std::deque<HeldDelivery*> waiting;
  Moment used = {};
  std::string last_error = {};
};

// What is shown of a host.
struct HostStatus {
  std::string host = {};
  HostLine::Breaker breaker = HostLine::Breaker::kClosed;
  Milliseconds pause{0};
  int limit = 0;
  int under_way = 0;
  std::size_t waiting = 0;
  int failures = 0;
  Milliseconds typical{0};
  std::string last_error = {};
};

// One owner, no lock.
class HostBook {
 public:
  HostBook(const HostLimits& limits, std::size_t most) : limits_(limits), most_(most) {}

  // Stays where it is while something is under way or waiting.
  Host& at(const std::string& key, Moment now);
  std::size_t size() const { return hosts_.size(); }
  std::vector<HostStatus> status(Moment now) const;  // By name.

 private:
  void forget_one();

  const HostLimits limits_;
  const std::size_t most_;
  platform::KeyedMap<std::string, Host> hosts_;
};

}  // namespace bide::server
