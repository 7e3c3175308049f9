// What the tests of this folder share: jobs, blocking calls, and a place where leases arrive.

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "bide/wait.h"
#include "engine/options.h"

namespace bide::brokers::shared {

inline engine::EngineOptions options_for(const std::string& directory) {
  engine::EngineOptions options;
  options.directory = directory;
  options.durability = engine::Durability::kOs;
  return options;
}

inline Job job_for(std::string queue = "default") {
  Job job;
  job.kind = "work";
  job.queue = std::move(queue);
  job.body = "body";
  return job;
}

inline Result<std::vector<Result<Enqueued>>> enqueue(Broker& broker, std::vector<Job> jobs) {
  return wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue(std::move(jobs), std::move(done)); });
}

inline JobId enqueue_one(Broker& broker, Job job = job_for()) {
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  auto answers = enqueue(broker, std::move(jobs));
  if (!answers) throw std::runtime_error(answers.error().message);
  if (!answers->at(0)) throw std::runtime_error(answers->at(0).error().message);
  return answers->at(0)->id;
}

inline Result<JobInfo> find(Inspector& inspector, const JobId& id) {
  return wait<JobInfo>([&](auto done) { inspector.find(id, std::move(done)); });
}

inline Status settle(Broker& broker, const Lease& lease, Outcome outcome = Done{}) {
  auto statuses = wait<std::vector<Status>>([&](auto done) {
    broker.settle({Settlement{.lease = {lease.job.id, lease.token}, .outcome = std::move(outcome)}}, std::move(done));
  });
  return statuses ? statuses->at(0) : Status(statuses.error());
}

inline Extended extend(Broker& broker, const Lease& lease) {
  auto answers = wait<std::vector<Extended>>([&](auto done) {
    broker.extend({{lease.job.id, lease.token}}, std::move(done));
  });
  if (!answers) throw std::runtime_error(answers.error().message);
  return answers->at(0);
}

inline QueueInfo queue_of(Inspector& inspector, const std::string& name = "default") {
  auto queues = wait<std::vector<QueueInfo>>([&](auto done) { inspector.queues(std::move(done)); });
  if (!queues) throw std::runtime_error(queues.error().message);
  for (QueueInfo& queue : *queues) {
    if (queue.name == name) return queue;
  }
  return {};
}

// Throws when nothing comes for so long that something must be broken.
class Basket {
 public:
  LeaseSink sink() {
    return [this](std::vector<Lease> some) {
      std::lock_guard lock(mutex_);
      for (Lease& lease : some) leases_.push_back(std::move(lease));
      arrived_.notify_all();
    };
  }
  std::vector<Lease> take(std::size_t count) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, std::chrono::seconds(30), [&] { return leases_.size() >= count; })) {
      throw std::runtime_error("only " + std::to_string(leases_.size()) + " leases of " + std::to_string(count));
    }
    return std::exchange(leases_, {});
  }
  Lease take_one() { return take(1).at(0); }
  std::size_t count() {
    std::lock_guard lock(mutex_);
    return leases_.size();
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable arrived_;
  std::vector<Lease> leases_;
};

}  // namespace bide::brokers::shared
