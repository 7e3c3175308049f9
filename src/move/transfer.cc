#include "move/transfer.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace bide::move {

namespace {

constexpr std::size_t kMostInABatch = 500;
// Where the target does not know ids, so many may be there twice after a kill.
constexpr std::size_t kMostWithoutIds = 100;
constexpr std::size_t kMostExamples = 20;

}  // namespace

Job carried(const JobInfo& info) {
  Job job = info.job;
  job.after.clear();  // All of them are done, or it would be waiting.
  job.delay = Milliseconds(0);
  job.due = info.due;
  job.past = std::make_shared<const JobPast>(JobPast{.attempts = std::min(info.attempts, Limits::kAttempts),
                                                     .counts = info.counts,
                                                     .history = info.history,
                                                     .dead = info.dead_reason,
                                                     .finished = info.finished});
  return job;
}

Job carried(const Lease& lease) {
  Job job = lease.job;
  job.after.clear();
  job.delay = Milliseconds(0);
  job.due = lease.due;
  job.past = std::make_shared<const JobPast>(JobPast{.attempts = std::min(lease.attempt - 1, Limits::kAttempts),
                                                     .counts = lease.counts,
                                                     .history = lease.history,
                                                     .dead = {},
                                                     .finished = {}});
  return job;
}

bool is_passing(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kOverloaded ||
         error.code == ErrorCode::kBusy || error.code == ErrorCode::kDiskFull;
}

Transfer::Transfer(const Endpoint& to, const MoveOptions& options)
    : to_(to), options_(options), target_(to.broker.capabilities()) {}

std::size_t Transfer::batch() const {
  const std::size_t most = target_.idempotent_ids ? kMostInABatch : kMostWithoutIds;
  if (options_.jobs_a_second <= 0) return most;
  return std::clamp<std::size_t>(static_cast<std::size_t>(options_.jobs_a_second), 1, most);
}

void Transfer::keep_to_rate(std::size_t jobs) {
  if (options_.jobs_a_second <= 0) return;
  std::this_thread::sleep_until(next_);
  const std::chrono::duration<double> share(static_cast<double>(jobs) / options_.jobs_a_second);
  next_ = std::max(next_, std::chrono::steady_clock::now()) +
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(share);
}

void Transfer::refuse(const JobId& id, const Error& error) {
  ++report_.refused;
  ++report_.reasons[std::string(to_string(error.code))];
  if (report_.examples.size() < kMostExamples) report_.examples.emplace_back(id, error.message);
}

Result<std::vector<Transfer::Fate>> Transfer::hand_over(std::vector<Job> jobs) {
  keep_to_rate(jobs.size());
  std::vector<Fate> fates(jobs.size(), Fate::kRefused);
  std::vector<std::size_t> open(jobs.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  const auto give_up = std::chrono::steady_clock::now() + options_.patience;
  for (std::chrono::milliseconds pause{100};; pause = std::min(pause * 2, std::chrono::milliseconds(5000))) {
    std::vector<Job> sent;
    sent.reserve(open.size());
    for (const std::size_t i : open) sent.push_back(jobs[i]);
    auto answers = wait<std::vector<Result<Enqueued>>>(
        [&](auto done) { to_.broker.enqueue(std::move(sent), std::move(done)); });
    std::vector<std::size_t> again;
    std::optional<Error> failure;
    for (std::size_t k = 0; k < open.size(); ++k) {
      const Error* error = !answers ? &answers.error() : !(*answers)[k] ? &(*answers)[k].error() : nullptr;
      if (error == nullptr) {
        fates[open[k]] = (*answers)[k]->existed ? Fate::kExisted : Fate::kMoved;
        continue;
      }
      // Sent again, a job that may be there would be there twice where the target does not know ids.
      const bool unknown = error->code == ErrorCode::kUnconfirmed;
      if (is_passing(*error) || unknown) {
        failure = *error;
        again.push_back(open[k]);
        if (unknown && !target_.idempotent_ids) return *failure;
      } else {
        refuse(jobs[open[k]].id, *error);
      }
    }
    if (again.empty()) return fates;
    if (std::chrono::steady_clock::now() + pause > give_up || should_stop()) return *failure;
    open = std::move(again);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace bide::move
