// Transfer: hands jobs to the target, at the rate that was asked for, and counts. A target that does not answer or wants
// less is asked again until the patience is over.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bide/wait.h"
#include "move/move.h"

namespace bide::move {

// As the target gets it. Of a lease: the attempt that the mover was given does not count.
Job carried(const JobInfo& info);
Job carried(const Lease& lease);

// Whether the same call may succeed later.
bool is_passing(const Error& error);

class Transfer {
 public:
  enum class Fate { kMoved, kExisted, kRefused };

  Transfer(const Endpoint& to, const MoveOptions& options);

  // One for each, in order. Refusals are counted; what was moved is not, that is for the caller to do once the source has
  // let go of it.
  Result<std::vector<Fate>> hand_over(std::vector<Job> jobs);

  // Calls until the answer is not a passing failure. Between the tries it waits a little longer each time.
  template <class T, class Start>
  Result<T> ask(Start start) {
    const auto give_up = std::chrono::steady_clock::now() + options_.patience;
    for (std::chrono::milliseconds pause{100};; pause = std::min(pause * 2, std::chrono::milliseconds(5000))) {
      Result<T> answer = wait<T>(start);
      if (answer || !is_passing(answer.error())) return answer;
      if (std::chrono::steady_clock::now() + pause > give_up || should_stop()) return answer;
      std::this_thread::sleep_for(pause);
    }
  }

  // Counted, and named in the report.
  void refuse(const JobId& id, const Error& error);

  bool should_stop() const { return options_.stop && options_.stop(); }
  // Jobs in one batch: few where the rate is low, so that none is held for long.
  std::size_t batch() const;
  MoveReport& report() { return report_; }
  void progress() const {
    if (options_.on_progress) options_.on_progress(report_);
  }
  const Endpoint& to() const { return to_; }
  const MoveOptions& options() const { return options_; }
  const Capabilities& target() const { return target_; }

 private:
  void keep_to_rate(std::size_t jobs);

  const Endpoint to_;
  const MoveOptions& options_;
  const Capabilities target_;
  MoveReport report_;
  std::chrono::steady_clock::time_point next_{};
};

// kUnsupported: jobs at the source wait for others. To take those away would cancel them, or let them run.
Status check_waiting(const Endpoint& from);
// The two ways of emptying a source.
Status move_by_listing(const Endpoint& from, Transfer& transfer);
Status move_by_leasing(const Endpoint& from, Transfer& transfer);
// Dead jobs are listed everywhere.
Status move_dead(const Endpoint& from, const std::vector<std::string>& queues, Transfer& transfer);

}  // namespace bide::move
