// Ledger, what a running attempt says of itself: the results of its steps, which are kept, and how far it is.

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/quote.h"
#include "engine/ledger.h"

namespace bide::engine {

namespace {

constexpr std::size_t kMostForgottenProgress = 64;

Status check_step(const Step& step, const SavedSteps::Steps* before) {
  const auto wrong = [](std::string text) { return Error{ErrorCode::kInvalidArgument, std::move(text)}; };
  if (step.name.empty() || step.name.size() > Limits::kNameBytes) {
    return wrong("invalid name of a step " + core::quoted(step.name) + "; allowed: 1 to " + std::to_string(Limits::kNameBytes) +
                 " bytes");
  }
  std::size_t steps = 1;
  std::size_t bytes = step.name.size() + step.result.size();
  for (const Step& other : before == nullptr ? SavedSteps::Steps{} : *before) {
    if (other.name == step.name) continue;
    ++steps;
    bytes += other.name.size() + other.result.size();
  }
  if (steps > Limits::kSteps) {
    return wrong("step " + core::quoted(step.name) + ": the job has the results of " + std::to_string(Limits::kSteps) +
                 " steps already, and no more are kept");
  }
  if (bytes > Limits::kStepBytes) {
    return wrong("step " + core::quoted(step.name) + ": the results of all steps have " + std::to_string(bytes) +
                 " bytes; allowed: " + std::to_string(Limits::kStepBytes) + "; store large results elsewhere and keep their address");
  }
  return {};
}

}  // namespace

Status Ledger::save_step(const LeaseRef& lease, Step step) {
  const Slot slot = state_.find(lease);
  if (slot == kNoSlot) return no_such_job(lease.id);
  if (find_lease(lease) == nullptr) return lease_lost(lease.id);
  if (Status valid = check_step(step, state_.steps().find(slot)); !valid) return valid;
  if (Status roomy = make_room(128 + step.name.size() + step.result.size(), false); !roomy) return roomy;
  const journal::StepRecord record{lease.id, lease.token, std::move(step)};
  append(*journal_, record);
  needs_sync_ = true;
  return state_.apply(record);
}

void Ledger::report_progress(const LeaseRef& lease, Progress progress) {
  if (find_lease(lease) == nullptr) return;
  progress.part = std::isfinite(progress.part) ? std::clamp(progress.part, 0.0, 1.0) : 0;
  if (progress.note.size() > Limits::kErrorBytes) progress.note.resize(Limits::kErrorBytes);
  progress_[lease.token] = {lease.id, std::move(progress)};
  // Of leases that have ended meanwhile.
  if (progress_.size() <= 2 * state_.leases().size() + kMostForgottenProgress) return;
  std::erase_if(progress_, [this](const auto& each) { return find_lease({each.second.first, each.first}) == nullptr; });
}

}  // namespace bide::engine
