#include "engine/request_batches.h"

#include <variant>

#include "core/job_rules.h"
#include "core/topics.h"
#include "engine/enqueue_order.h"

namespace bide::engine {

namespace {

// What the engine keeps; as in Engine::capabilities().
constexpr core::Kept kKept{.past = true, .groups = true, .dependencies = true, .unique_windows = true};

Status check(const Job& job, Time now) {
  Status valid = core::validate(job, now);
  return valid ? core::check_kept(job, kKept) : valid;
}

Status check(const Settlement& settlement, Time now) {
  const auto too_large = [&](const char* what, const std::string& bytes) {
    return Error{ErrorCode::kInvalidArgument, std::string(what) + " of job " + settlement.lease.id.to_string() +
                                                  " has " + std::to_string(bytes.size()) + " bytes; at most " +
                                                  std::to_string(Limits::kBodyBytes) + " are kept"};
  };
  for (const Job& effect : settlement.effects) {
    if (Status valid = check(effect, now); !valid) {
      return Error{valid.error().code,
                   "an effect of job " + settlement.lease.id.to_string() + ": " + valid.error().message};
    }
  }
  const auto* done = std::get_if<Done>(&settlement.outcome);
  if (done != nullptr && done->result.size() > Limits::kBodyBytes) return too_large("the result", done->result);
  const auto* again = std::get_if<RetryAt>(&settlement.outcome);
  if (again != nullptr && again->body && again->body->size() > Limits::kBodyBytes) {
    return too_large("the new body", *again->body);
  }
  return {};
}

}  // namespace

void EncodedJobs::add(const Job& job) {
  const std::size_t at = bytes_.size();
  const std::uint8_t flags = journal::encode_fields(job, bytes_);
  pieces_.push_back({at, static_cast<std::uint32_t>(bytes_.size() - at), flags});
}

EnqueueBatch EnqueueBatch::of(std::vector<Job> jobs, Time now) {
  EnqueueBatch batch;
  EnqueueOrder order = EnqueueOrder::of(jobs);
  order.apply(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Status valid = check(jobs[i], now);
    if (valid && i >= order.first_in_circle) valid = waits_in_a_circle(jobs[i]);
    if (!valid) batch.refused.emplace_back(i, valid.error());
    batch.encoded.add(jobs[i]);
  }
  batch.order = std::move(order.places);
  batch.jobs = std::move(jobs);
  return batch;
}

EventBatch EventBatch::of(std::vector<Job> events, Time now) {
  EventBatch batch;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (Status valid = core::validate_event(events[i], now); !valid) batch.refused.emplace_back(i, valid.error());
  }
  batch.events = std::move(events);
  return batch;
}

namespace {

std::uint64_t bytes_in_memory(const std::vector<Job>& jobs) {
  std::uint64_t sum = 0;
  for (const Job& job : jobs) {
    sum += sizeof(Job) + job.body.size();
    for (const auto& [name, value] : job.headers) sum += sizeof name + name.size() + sizeof value + value.size();
    if (!job.past) continue;
    for (const AttemptError& error : job.past->history) sum += sizeof error + error.text.size();
  }
  return sum;
}

}  // namespace

std::uint64_t EnqueueBatch::bytes() const { return encoded.bytes() + bytes_in_memory(jobs); }

std::uint64_t EventBatch::bytes() const { return bytes_in_memory(events); }

std::uint64_t SettleBatch::bytes() const {
  std::uint64_t sum = encoded_effects.bytes();
  for (const Settlement& settlement : settlements) {
    for (const Job& effect : settlement.effects) sum += effect.body.size();
    if (const auto* done = std::get_if<Done>(&settlement.outcome)) sum += done->result.size();
    const auto* again = std::get_if<RetryAt>(&settlement.outcome);
    if (again != nullptr && again->body) sum += again->body->size();
  }
  return sum;
}

SettleBatch SettleBatch::of(std::vector<Settlement> settlements, Time now) {
  SettleBatch batch;
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    const EnqueueOrder order = EnqueueOrder::of(settlements[i].effects);
    order.apply(settlements[i].effects);
    Status valid = check(settlements[i], now);
    if (valid && order.first_in_circle < settlements[i].effects.size()) {
      valid = waits_in_a_circle(settlements[i].effects[order.first_in_circle]);
    }
    if (!valid) batch.refused.emplace_back(i, valid.error());
    for (const Job& effect : settlements[i].effects) batch.encoded_effects.add(effect);
  }
  batch.settlements = std::move(settlements);
  return batch;
}

}  // namespace bide::engine
