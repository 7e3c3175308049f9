#include "cli/replay.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "cli/ask.h"
#include "cli/json.h"
#include "cli/replay_watch.h"
#include "cli/say.h"
#include "cli/statuses.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace bide::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 1000;
constexpr auto kLook = std::chrono::milliseconds(50);

class Replay {
 public:
  Replay(Client& client, const Invocation& call, const std::vector<JobInfo>& jobs, const ReplayPlan& plan)
      : client_(client), call_(call), jobs_(jobs), plan_(plan), watch_(client) {}

  int run() {
    if (plan_.canary > 0) try_canaries();
    if (plan_.rate > 0) {
      go_on_at_rate();
    } else {
      while (next_ < jobs_.size()) replay(kBatch);
    }
    progress_.clear();
    if (jobs_.empty() && !call_.json()) say("no dead jobs match");
    return print_statuses(call_, "replayed", ids_, statuses_);
  }

 private:
  // The next ones, up to so many.
  void replay(std::size_t most) {
    std::vector<JobId> ids;
    const std::size_t end = std::min(jobs_.size(), next_ + most);
    for (std::size_t i = next_; i < end; ++i) ids.push_back(jobs_[i].job.id);
    const ReplayOptions options{.keep_attempts = plan_.keep_attempts, .delay = Milliseconds(0)};
    const auto answers =
        ask<std::vector<Status>>([&](auto done) { client_.inspector().replay(ids, options, std::move(done)); });
    for (std::size_t i = 0; i < ids.size() && i < answers.size(); ++i) {
      const std::uint32_t faults = plan_.keep_attempts ? jobs_[next_ + i].counts.total() : 0;
      if (answers[i]) watch_.add(ids[i], faults);
      ids_.push_back(ids[i]);
      statuses_.push_back(answers[i]);
    }
    next_ = end;
    show_progress();
  }

  void try_canaries() {
    replay(plan_.canary);
    const auto until = Clock::now() + plan_.timeout;
    for (watch_.look(); watch_.open() > 0 && watch_.failed() == 0; watch_.look()) {
      if (Clock::now() >= until) {
        stop(kTryAgain, std::to_string(watch_.open()) + " of " + std::to_string(ids_.size()) +
                            " canaries came to no end in time; is a worker running?");
      }
      std::this_thread::sleep_for(kLook);
      show_progress();
    }
    if (watch_.failed() > 0) stop(kJobFailed, "a canary failed: " + watch_.first_failure());
  }

  void go_on_at_rate() {
    const auto begin = Clock::now();
    const std::size_t before = next_;
    while (next_ < jobs_.size()) {
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      const auto due = before + 1 + static_cast<std::size_t>(seconds * plan_.rate);
      if (due > next_) replay(std::min(due - next_, kBatch));
      watch_.look();
      stop_if_too_many_fail();
      show_progress();
      if (next_ < jobs_.size()) std::this_thread::sleep_for(kLook);
    }
  }

  void stop_if_too_many_fail() {
    const std::size_t judged = watch_.failed() + watch_.well();
    const bool too_many = watch_.failed() * 100 > judged * static_cast<std::size_t>(plan_.stop_at);
    if (next_ == jobs_.size() || watch_.failed() < kFewestFailures || !too_many) return;
    stop(kJobFailed, std::to_string(watch_.failed()) + " of " + std::to_string(judged) +
                         " that were tried failed again; " + watch_.first_failure());
  }

  [[noreturn]] void stop(int exit_code, const std::string& why) {
    progress_.clear();
    throw Failure{exit_code,
                  "stopped after " + std::to_string(ids_.size()) + " of " + std::to_string(jobs_.size()) +
                      " jobs, the rest stays dead: " + why,
                  exit_code == kJobFailed ? "failed_again" : ""};
  }

  void show_progress() {
    if (jobs_.empty()) return;
    progress_.show(progress_bar(static_cast<double>(next_) / static_cast<double>(jobs_.size())) + " replayed " +
                   std::to_string(next_) + " of " + std::to_string(jobs_.size()) + ", " +
                   std::to_string(watch_.well()) + " done, " + std::to_string(watch_.failed()) + " failed again");
  }

  Client& client_;
  const Invocation& call_;
  const std::vector<JobInfo>& jobs_;
  const ReplayPlan& plan_;
  ReplayWatch watch_;
  StatusLine progress_;
  std::size_t next_ = 0;
  std::vector<JobId> ids_;
  std::vector<Status> statuses_;
};

}  // namespace

int replay_jobs(Client& client, const Invocation& call, const std::vector<JobInfo>& jobs, const ReplayPlan& plan) {
  return Replay(client, call, jobs, plan).run();
}

int print_plan(const Invocation& call, const std::vector<JobInfo>& jobs) {
  std::map<std::string, std::uint64_t> kinds;
  for (const JobInfo& info : jobs) ++kinds[info.job.kind];
  if (call.json()) {
    JsonObject by_kind;
    for (const auto& [kind, count] : kinds) by_kind.add(kind, count);
    std::puts(JsonObject().add("would_replay", jobs.size()).add("by_kind", by_kind).text().c_str());
    return kOk;
  }
  std::printf("would replay %zu jobs\n", jobs.size());
  Table table;
  for (const auto& [kind, count] : kinds) table.row({"  " + kind, std::to_string(count)});
  std::fputs(table.text().c_str(), stdout);
  return kOk;
}

}  // namespace bide::cli
