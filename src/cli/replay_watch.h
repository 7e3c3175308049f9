// ReplayWatch: what becomes of jobs that were replayed.

#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "bide/client.h"

namespace bide::cli {

class ReplayWatch {
 public:
  explicit ReplayWatch(const Client& client) : client_(client) {}

  // `faults`: attempts that count as gone wrong already. Of very many that come to no end only the first are watched.
  void add(const JobId& id, std::uint32_t faults);
  // Asks the broker about those that are still open. Throws Failure.
  void look();

  std::size_t open() const { return open_.size(); }
  std::size_t well() const { return well_; }      // Done, or taken out by somebody.
  std::size_t failed() const { return failed_; }  // Dead, or waiting for another attempt after a fault.
  const std::string& first_failure() const { return first_failure_; }  // For people.

 private:
  struct Watched {
    JobId id;
    std::uint32_t faults = 0;
  };
  // True when there is nothing more to be seen of it.
  bool judge(const Watched& watched, const Result<JobInfo>& info);

  const Client client_;
  std::deque<Watched> open_;
  std::size_t well_ = 0;
  std::size_t failed_ = 0;
  std::string first_failure_;
};

}  // namespace bide::cli
