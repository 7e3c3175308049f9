#include "server/callbacks/host_book.h"

#include <algorithm>

namespace bide::server {

Host& HostBook::at(const std::string& key, Moment now) {
  auto found = hosts_.find(key);
  if (found == hosts_.end()) {
    if (hosts_.size() >= most_) forget_one();
    found = hosts_.emplace(key, Host(limits_)).first;
  }
  found->second.used = now;
  return found->second;
}

// There are never more busy hosts than deliveries in hand, so the book stays bounded when all of them are.
void HostBook::forget_one() {
  auto quiet = hosts_.end();
  for (auto host = hosts_.begin(); host != hosts_.end(); ++host) {
    if (host->second.line.under_way() > 0 || !host->second.waiting.empty()) continue;
    if (quiet == hosts_.end() || host->second.used < quiet->second.used) quiet = host;
  }
  if (quiet != hosts_.end()) hosts_.erase(quiet);
}

std::vector<HostStatus> HostBook::status(Moment now) const {
  std::vector<HostStatus> all;
  for (const auto& [key, host] : hosts_) {
    all.push_back({.host = key,
                   .breaker = host.line.breaker(now),
                   .pause = host.line.pause_left(now),
                   .limit = host.line.limit(),
                   .under_way = host.line.under_way(),
                   .waiting = host.waiting.size(),
                   .failures = host.line.failures_in_a_row(),
                   .typical = host.line.typical(),
                   .last_error = host.last_error});
  }
  std::sort(all.begin(), all.end(), [](const HostStatus& a, const HostStatus& b) { return a.host < b.host; });
  return all;
}

}  // namespace bide::server
