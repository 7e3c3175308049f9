#include "engine/offer.h"

#include <variant>

#include "core/job_rules.h"

namespace bide::engine {

namespace {

Status check(const Settlement& settlement, Time now) {
  const auto too_large = [&](const char* what, const std::string& bytes) {
    return Error{ErrorCode::kInvalidArgument, std::string(what) + " of job " + settlement.lease.id.to_string() +
                                                  " has " + std::to_string(bytes.size()) + " bytes; at most " +
                                                  std::to_string(Limits::kBodyBytes) + " are kept"};
  };
  for (const Job& effect : settlement.effects) {
    if (Status valid = core::validate(effect, now); !valid) {
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

void WrittenJobs::add(const Job& job) {
  const std::size_t at = bytes_.size();
  const std::uint8_t flags = journal::write_fields(job, bytes_);
  pieces_.push_back({at, static_cast<std::uint32_t>(bytes_.size() - at), flags});
}

Offer Offer::of(std::vector<Job> jobs, Time now) {
  Offer offer;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (Status valid = core::validate(jobs[i], now); !valid) offer.refused.emplace_back(i, valid.error());
    offer.written.add(jobs[i]);
  }
  offer.jobs = std::move(jobs);
  return offer;
}

std::uint64_t Offer::bytes() const {
  std::uint64_t sum = written.bytes();
  for (const Job& job : jobs) {
    sum += sizeof(Job) + job.body.size();
    for (const auto& [name, value] : job.headers) sum += sizeof name + name.size() + sizeof value + value.size();
  }
  return sum;
}

std::uint64_t Verdicts::bytes() const {
  std::uint64_t sum = written_effects.bytes();
  for (const Settlement& settlement : settlements) {
    for (const Job& effect : settlement.effects) sum += effect.body.size();
  }
  for (const Settlement& settlement : settlements) {
    if (const auto* done = std::get_if<Done>(&settlement.outcome)) sum += done->result.size();
    const auto* again = std::get_if<RetryAt>(&settlement.outcome);
    if (again != nullptr && again->body) sum += again->body->size();
  }
  return sum;
}

Verdicts Verdicts::of(std::vector<Settlement> settlements, Time now) {
  Verdicts verdicts;
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    if (Status valid = check(settlements[i], now); !valid) verdicts.refused.emplace_back(i, valid.error());
    for (const Job& effect : settlements[i].effects) verdicts.written_effects.add(effect);
  }
  verdicts.settlements = std::move(settlements);
  return verdicts;
}

}  // namespace bide::engine
