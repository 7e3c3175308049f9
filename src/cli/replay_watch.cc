#include "cli/replay_watch.h"

#include "cli/failure.h"

namespace bide::cli {

namespace {

constexpr std::size_t kMostWatched = 2000;

}  // namespace

void ReplayWatch::add(const JobId& id, std::uint32_t faults) {
  if (open_.size() < kMostWatched) open_.push_back({id, faults});
}

void ReplayWatch::look() {
  std::erase_if(open_, [this](const Watched& watched) { return judge(watched, client_.find(watched.id)); });
}

bool ReplayWatch::judge(const Watched& watched, const Result<JobInfo>& info) {
  if (!info && info.error().code != ErrorCode::kNotFound) fail(info.error());
  if (!info || info->state == JobState::kDone) {
    ++well_;
    return true;
  }
  const bool faulty = info->state == JobState::kDead || info->counts.total() > watched.faults;
  if (!faulty) return false;
  ++failed_;
  if (first_failure_.empty()) {
    const std::string error = info->history.empty() ? "" : ": " + info->history.back().text;
    first_failure_ =
        "job " + watched.id.to_string() + (info->state == JobState::kDead ? " is dead again" : " failed again") + error;
  }
  return true;
}

}  // namespace bide::cli
