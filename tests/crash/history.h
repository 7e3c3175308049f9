// History: what a store's users saw, one line for each event, appended to a file outside the store by the process that
// is going to be killed. A line is one write, so it is there whole or not at all, and in order.
//
//   O pid                      a process has opened the store
//   E id                       an enqueue was confirmed
//   S id token attempt now_us not_before_us  an attempt begins; the last is from the job's body
//   F id token                 it ends; whatever comes now must be another attempt
//   D id token                 it was settled as done, confirmed
//   R id token                 it was settled as retry, confirmed

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bide::crash {

struct Findings {
  // Must all be zero.
  std::uint64_t early = 0;
  std::uint64_t run_after_settle = 0;
  std::uint64_t overlap = 0;
  std::uint64_t attempts_not_counted = 0;  // An attempt has the number of an earlier one that was charged.

  std::uint64_t processes = 0;
  std::uint64_t confirmed = 0;
  std::uint64_t starts = 0;
  std::uint64_t settled = 0;
  std::uint64_t duplicates_by_crash = 0;  // Started again after a process died between its start and a durable settle.
  std::uint64_t retries = 0;
  std::map<std::string, bool> jobs;  // Confirmed; true: its settle as done was confirmed, too.
  std::string first_problem;
};

Findings examine(const std::string& path);

}  // namespace bide::crash
