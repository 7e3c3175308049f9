#include "support/fault_plan.h"

#include <algorithm>

#include "platform/fatal.h"

namespace bide::support {

const char* to_string(Operation operation) {
  static constexpr std::array<const char*, kOperations> kNames = {
      "read",   "write",  "sync",   "allocate",       "truncate",
      "create", "rename", "remove", "make directory", "sync directory"};
  return kNames[static_cast<std::size_t>(operation)];
}

void FaultPlan::add(const PlannedFault& planned) {
  platform::require(planned.nth > 0 && planned.times > 0, "a planned fault has a place to happen");
  const auto first = count(planned.operation) + planned.nth;
  const auto last = planned.times > UINT64_MAX - first ? UINT64_MAX : first + planned.times - 1;
  scheduled_.push_back({planned.operation, first, last, planned.fault});
}

std::optional<Fault> FaultPlan::next(Operation operation) {
  const auto number = ++counts_[static_cast<std::size_t>(operation)];
  for (auto it = scheduled_.begin(); it != scheduled_.end(); ++it) {
    if (it->operation != operation || number < it->first || number > it->last) continue;
    const Fault fault = it->fault;
    if (number == it->last) scheduled_.erase(it);
    ++fired_;
    return fault;
  }
  return std::nullopt;
}

std::uint64_t FaultPlan::outstanding() const {
  std::uint64_t sum = 0;
  for (const auto& fault : scheduled_) sum += fault.last - std::max(fault.first, count(fault.operation) + 1) + 1;
  return sum;
}

}  // namespace bide::support
