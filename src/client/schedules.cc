// Client, schedules: the blocking face of what the inspector offers.

#include <utility>

#include "bide/client.h"
#include "bide/wait.h"

namespace bide {

Result<PutSchedule> Client::put_schedule(Schedule schedule) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<PutSchedule>([&](auto done) { (*inspector)->put_schedule(std::move(schedule), std::move(done)); });
}

Result<std::vector<ScheduleInfo>> Client::schedules() const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<std::vector<ScheduleInfo>>([&](auto done) { (*inspector)->schedules(std::move(done)); });
}

Status Client::remove_schedule(std::string name) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<void>([&](auto done) { (*inspector)->remove_schedule(std::move(name), std::move(done)); });
}

Status Client::pause_schedule(std::string name) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<void>([&](auto done) { (*inspector)->pause_schedule(std::move(name), true, std::move(done)); });
}

Status Client::resume_schedule(std::string name) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<void>([&](auto done) { (*inspector)->pause_schedule(std::move(name), false, std::move(done)); });
}

Result<JobId> Client::run_schedule(std::string name) const {
  const auto inspector = shared_inspector();
  if (!inspector) return inspector.error();
  return wait<JobId>([&](auto done) { (*inspector)->run_schedule(std::move(name), std::move(done)); });
}

}  // namespace bide
