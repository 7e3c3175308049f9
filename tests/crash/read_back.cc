#include "crash/read_back.h"

#include <stdexcept>

#include "bide/wait.h"

namespace bide::crash {
namespace {

template <class T>
T require(Result<T> result, const char* what) {
  if (result) return std::move(result).value();
  throw std::runtime_error(std::string(what) + ": " + result.error().message);
}

}  // namespace

Readback read_back(const Capabilities& can, Inspector& inspector) {
  Readback found;
  std::string cursor;
  do {
    if (!can.inspect) break;
    auto page = require(wait<JobPage>([&](auto done) { inspector.list({}, cursor, 1000, std::move(done)); }), "list");
    for (const JobInfo& info : page.jobs) {
      found.jobs.emplace_back(info.job.id.to_string(), info.state);
      if (info.dead_reason) ++found.dead_by_reason[std::string(to_string(*info.dead_reason))];
    }
    cursor = std::move(page.next);
  } while (!cursor.empty());
  if (can.audit) {
    const auto audit = require(wait<AuditReport>([&](auto done) { inspector.audit(std::move(done)); }), "audit");
    found.audit_problems = audit.problems;
  }
  return found;
}

std::uint64_t count_unfinished(Inspector& inspector) {
  std::uint64_t count = 0;
  const auto queues =
      require(wait<std::vector<QueueInfo>>([&](auto done) { inspector.queues(std::move(done)); }), "queues");
  for (const QueueInfo& queue : queues) count += queue.scheduled + queue.ready + queue.running;
  return count;
}

}  // namespace bide::crash
