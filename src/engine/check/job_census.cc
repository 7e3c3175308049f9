#include "engine/check/job_census.h"

#include <algorithm>

namespace bide::engine::check {

namespace {

std::string misfit(RecordType type, const JobId& id, const char* why) {
  return std::string(name_of_type(static_cast<std::uint8_t>(type))) + " of job " + id.to_string() + ", " + why;
}

}  // namespace

std::optional<std::string> JobCensus::apply(const RecordFacts& facts, std::uint64_t address) {
  for (const JobId& id : facts.ids) {
    if (auto problem = facts.type == RecordType::kAccepted ? apply_accepted(facts, id, address)
                                                           : apply_one(facts, id, address)) {
      return problem;
    }
  }
  return std::nullopt;
}

std::optional<std::string> JobCensus::apply_accepted(const RecordFacts& facts, const JobId& id, std::uint64_t address) {
  const auto found = jobs_.find(id);
  if (facts.replaces_body) {
    if (found == jobs_.end() || found->second.state != State::kRunning) {
      return misfit(facts.type, id, "which is not running and gets a new body");
    }
    found->second = {State::kWaiting, address, 0};
    return std::nullopt;
  }
  if (facts.edits) {
    if (found == jobs_.end() || (found->second.state != State::kWaiting && found->second.state != State::kDead)) {
      return misfit(facts.type, id, "which neither waits nor is dead and is edited");
    }
    found->second = {State::kWaiting, address, 0};
    return std::nullopt;
  }
  // A job that is done may have been forgotten, which is not written down, and have come again.
  if (found != jobs_.end() && found->second.state != State::kDone) {
    return misfit(facts.type, id, "which is there already");
  }
  jobs_[id] = {State::kWaiting, address, 0};
  ++counters_.accepted;
  return std::nullopt;
}

std::optional<std::string> JobCensus::apply_one(const RecordFacts& facts, const JobId& id, std::uint64_t address) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    // A done job may have been forgotten.
    if (facts.type == RecordType::kMoved) return std::nullopt;
    return misfit(facts.type, id, "which is not there");
  }
  Place& place = found->second;
  switch (facts.type) {
    case RecordType::kGranted:
      if (place.state != State::kWaiting) return misfit(facts.type, id, "which is not waiting");
      place.state = State::kRunning;
      break;
    case RecordType::kChanged:
      if (place.state == State::kDone) return misfit(facts.type, id, "which is done");
      place.state = facts.dead ? State::kDead : State::kWaiting;
      place.details = address;
      break;
    case RecordType::kDone:
      if (place.state != State::kRunning) return misfit(facts.type, id, "which is not running");
      place = {State::kDone, place.body, address};  // Its record is kept for a while, and may move.
      ++counters_.done;
      break;
    case RecordType::kRemoved: {
      if (place.state == State::kDone) return misfit(facts.type, id, "which is done");
      std::uint64_t* const counters[] = {&counters_.cancelled, &counters_.deleted, &counters_.purged,
                                         &counters_.forgotten};
      ++*counters[facts.cause - 1];
      jobs_.erase(found);
      break;
    }
    case RecordType::kStep:
    case RecordType::kCancelAsked:
    case RecordType::kDelivered:
      if (place.state != State::kRunning) return misfit(facts.type, id, "which is not running");
      break;
    case RecordType::kMoved:
      if (place.body != 0 && place.body == facts.moved_from) {
        place.body = address;
      } else if (place.details != 0 && place.details == facts.moved_from) {
        place.details = address;
      } else {
        return misfit(facts.type, id, "but from elsewhere");
      }
      break;
    default:
      break;
  }
  return std::nullopt;
}

std::vector<JobCensus::Need> JobCensus::needs() const {
  std::vector<Need> needs;
  needs.reserve(jobs_.size());
  for (const auto& [id, place] : jobs_) {
    // What a done job left behind goes when it is forgotten, and that is not written down.
    if (place.state == State::kDone) continue;
    needs.push_back({place.body, id, true});
    if (place.details != 0) needs.push_back({place.details, id, false});
  }
  std::sort(needs.begin(), needs.end(), [](const Need& a, const Need& b) { return a.address < b.address; });
  return needs;
}

std::vector<JobCensus::Need> JobCensus::results() const {
  std::vector<Need> results;
  for (const auto& [id, place] : jobs_) {
    if (place.state == State::kDone && place.details != 0) results.push_back({place.details, id, false});
  }
  std::sort(results.begin(), results.end(), [](const Need& a, const Need& b) { return a.address < b.address; });
  return results;
}

void JobCensus::fill(StoreReport& report) const {
  std::uint64_t* const by_state[] = {&report.waiting, &report.running, &report.done_remembered, &report.dead};
  for (const auto& [id, place] : jobs_) ++*by_state[static_cast<std::size_t>(place.state)];
  report.accepted = counters_.accepted;
  report.done = counters_.done;
  report.cancelled = counters_.cancelled;
  report.deleted = counters_.deleted;
  report.purged = counters_.purged;
  report.forgotten = counters_.forgotten;
}

}  // namespace bide::engine::check
