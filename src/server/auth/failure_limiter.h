// FailureLimiter: how often somebody may fail. Each may fail a number of times at once, and then once in a while; of more
// callers than are allowed, those who failed longest ago are forgotten. Safe to use from any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "platform/keyed_hash.h"

namespace bide::server {

class FailureLimiter {
 public:
  FailureLimiter(int at_once, Milliseconds forgotten_after, std::size_t callers);

  // Another failure, at this moment of elapsed time. How long the caller should wait; 0: it was within the limit.
  Milliseconds fail(const std::string& caller, std::int64_t now_us);
  std::size_t callers() const;

 private:
  struct Caller {
    std::string name;
    std::int64_t clear_us = 0;  // When all failures will be forgotten.
  };

  const int at_once_;
  const std::int64_t forgotten_after_us_;
  const std::size_t most_callers_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::list<Caller> by_age_;  // Who failed last is first.
  // The names are those of the list.
  platform::KeyedMap<std::string_view, std::list<Caller>::iterator> by_name_;
};

// Loopback, or "unix". An address that cannot be read is not.
bool is_local(std::string_view peer);

// Whose failures are counted together: an IPv4 address, or a /64 of IPv6, which one user has all to themselves.
std::string address_group(std::string_view peer);

}  // namespace bide::server
