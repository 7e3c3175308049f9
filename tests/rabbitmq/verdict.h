// What a run under faults must have come to, whatever was done to the server meanwhile.

#pragma once

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "crash/checker.h"
#include "rabbitmq/load.h"

namespace bide::rabbitmq_test {

// What RabbitMQ allows to happen after a failover, and bide reports instead of promising: a job that was out with a
// worker is handed out again, an acknowledgement that was on its way is lost. Everything else must not happen at all.
inline bool is_a_duplicate(const std::string& violation) {
  return violation == "overlap" || violation == "stale_accepted" || violation == "unexplained" ||
         violation == "uncounted";
}

// Drains the load, examines it, and prints what was found. A run with less than the least load proves nothing.
inline void expect_nothing_lost(Load& load, std::uint64_t least_confirmed) {
  load.stop_producing();
  EXPECT_TRUE(load.drain()) << load.unfinished() << " confirmed jobs have not come to an end";
  crash::Findings findings = load.examine();
  EXPECT_GE(findings.confirmed, least_confirmed) << "invalid: too little was confirmed for this to prove anything";
  for (const auto& [violation, count] : findings.violations) {
    if (is_a_duplicate(violation)) continue;
    EXPECT_EQ(count, 0u) << violation;
  }
  EXPECT_EQ(load.forgotten(), 0u) << "handed out again by the process that had settled them";
  std::printf("%s", findings.report().c_str());
  std::fflush(stdout);
}

}  // namespace bide::rabbitmq_test
