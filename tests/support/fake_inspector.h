// FakeInspector: knows nothing. Tests override what they look at.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bide/inspector.h"

namespace bide::support {

class FakeInspector : public Inspector {
 public:
  void queues(Completion<std::vector<QueueInfo>> done) override { done(none()); }
  void find(JobId, Completion<JobInfo> done) override { done(none()); }
  void list(JobFilter, std::string, std::size_t, Completion<JobPage> done) override { done(none()); }
  void explain(JobId, Completion<Explanation> done) override { done(none()); }
  void audit(Completion<AuditReport> done) override { done(none()); }
  GiveUp watch(JobId, Completion<JobInfo> done) override {
    done(none());
    return [] {};
  }
  void cancel(std::vector<JobId>, CancelOptions, Completion<std::vector<Status>> done) override { done(none()); }
  void reschedule(JobId, Time, Completion<void> done) override { done(none()); }
  void replay(std::vector<JobId>, ReplayOptions, Completion<std::vector<Status>> done) override { done(none()); }
  void pause(std::string, bool, Completion<void> done) override { done(none()); }
  void purge(std::string, Completion<std::uint64_t> done) override { done(none()); }

 private:
  static Error none() { return {ErrorCode::kUnsupported, "not here"}; }
};

}  // namespace bide::support
