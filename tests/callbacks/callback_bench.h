// What a test of callbacks needs: an engine in a folder of its own, the service that delivers, and ways to wait for
// what becomes of a job.

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "core/forwarding_broker.h"
#include "server/callbacks/callback_service.h"
#include "support/http_receiver.h"
#include "support/temporary_directory.h"

namespace bide::server {

using support::HttpPeer;
using support::HttpReceived;
using support::HttpReceiver;
using namespace std::chrono_literals;

// Counts what passes, so that a test can wait for it.
class WitnessBroker : public core::ForwardingBroker {
 public:
  explicit WitnessBroker(std::shared_ptr<Broker> broker) : broker_(std::move(broker)) {}

  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override {
    broker_->extend(std::move(leases), [seen = seen_, done = std::move(done)](Result<std::vector<Extended>> answers) {
      done(std::move(answers));
      std::lock_guard lock(seen->mutex);
      ++seen->extensions;
      seen->changed.notify_all();
    });
  }
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override {
    {
      std::lock_guard lock(seen_->mutex);
      seen_->settled.insert(seen_->settled.end(), settlements.begin(), settlements.end());
    }
    broker_->settle(std::move(settlements),
                    [seen = seen_, done = std::move(done)](Result<std::vector<Status>> statuses) {
                      done(std::move(statuses));
                      std::lock_guard lock(seen->mutex);
                      seen->confirmed = seen->settled.size();
                      seen->changed.notify_all();
                    });
  }

  void wait_for_extensions(int more) { wait_for_extensions_since(extensions(), more); }
  void wait_for_extensions_since(int before, int more) {
    std::unique_lock lock(seen_->mutex);
    seen_->changed.wait(lock, [&] { return seen_->extensions >= before + more; });
  }
  int extensions() const {
    std::lock_guard lock(seen_->mutex);
    return seen_->extensions;
  }
  std::vector<Settlement> wait_for_settled(std::size_t count) {
    std::unique_lock lock(seen_->mutex);
    seen_->changed.wait(lock, [&] { return seen_->confirmed >= count; });
    return seen_->settled;
  }
  std::size_t returned() const { return count<Returned>(); }
  std::size_t retried() const { return count<RetryAt>(); }

 private:
  // Outlives the witness: the service may be gone, and with it the test, as soon as `done` has been told.
  struct Seen {
    std::mutex mutex;  // Guards everything below.
    std::condition_variable changed;
    int extensions = 0;
    std::size_t confirmed = 0;
    std::vector<Settlement> settled;
  };

  template <class Kind>
  std::size_t count() const {
    std::lock_guard lock(seen_->mutex);
    std::size_t sum = 0;
    for (const Settlement& each : seen_->settled) sum += std::holds_alternative<Kind>(each.outcome) ? 1 : 0;
    return sum;
  }

  Broker& next_broker() const override { return *broker_; }

  const std::shared_ptr<Broker> broker_;
  const std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};

class CallbackTest : public testing::Test {
 protected:
  // Short deadlines, everything on loopback allowed.
  static CallbackOptions options() {
    CallbackOptions made;
    made.policy = AddressPolicy::make("allow-list", {"127.0.0.1:*"}).value();
    made.connect_within = 5s;
    made.answer_within = 10s;
    made.shortest_pause = 200ms;
    made.longest_pause = 400ms;
    return made;
  }

  void SetUp() override { open(); }
  void TearDown() override { close(); }

  void open() {
    auto opened = brokers::open_broker("bide:" + folder_.path() + "/data");
    ASSERT_TRUE(opened) << opened.error().message;
    inspector = opened->inspector;
    witness = std::make_shared<WitnessBroker>(opened->broker);
  }
  void stop() {
    if (service) service->stop(0ms);
    service.reset();
    broker.reset();
  }
  void close() {
    stop();
    witness.reset();
    inspector.reset();
  }

  void start(CallbackOptions chosen = options()) {
    auto started = CallbackService::start(std::move(chosen), witness, inspector);
    ASSERT_TRUE(started) << started.error().message;
    service = std::move(*started);
    broker = service->broker();
  }

  static Job job_to(const std::string& url, std::string body = "hello") {
    Job job;
    job.kind = "greet";
    job.queue = "callbacks";
    job.body = std::move(body);
    job.headers = {{"bide-callback", url}};
    job.retry = RetryPolicy::fixed(10ms, 5);
    return job;
  }

  JobId enqueue(Job job) {
    std::vector<Job> jobs;
    jobs.push_back(std::move(job));
    auto results =
        wait<std::vector<Result<Enqueued>>>([&](auto done) { broker->enqueue(std::move(jobs), std::move(done)); });
    return results.value().at(0).value().id;
  }
  // Done or dead.
  JobInfo end_of(const JobId& id) {
    return wait<JobInfo>([&](auto done) { inspector->watch(id, std::move(done)); }).value();
  }
  JobInfo find(const JobId& id) {
    return wait<JobInfo>([&](auto done) { inspector->find(id, std::move(done)); }).value();
  }
  JobInfo deliver(Job job) { return end_of(enqueue(std::move(job))); }
  Status settle(Settlement settlement) {
    return wait<std::vector<Status>>([&](auto done) { broker->settle({std::move(settlement)}, std::move(done)); })
        .value()
        .at(0);
  }
  // Asks a route of the service.
  Response ask(Method method, std::string_view pattern, Request request);

  support::TemporaryDirectory folder_;
  std::shared_ptr<Inspector> inspector;
  std::shared_ptr<WitnessBroker> witness;
  std::unique_ptr<CallbackService> service;
  std::shared_ptr<Broker> broker;
};

// Waits for the one answer.
class WaitingTarget : public ReplyTarget {
 public:
  void send(Response response) override {
    std::lock_guard lock(mutex_);
    response_ = std::move(response);
    arrived_ = true;
    changed_.notify_all();
  }
  std::shared_ptr<Stream> stream(Response) override { return nullptr; }
  void on_gone(std::function<void()>) override {}
  Response wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_; });
    return response_;
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  bool arrived_ = false;
  Response response_;
};

inline Response CallbackTest::ask(Method method, std::string_view pattern, Request request) {
  for (const Route& route : service->routes()) {
    if (route.method != method || route.pattern != pattern) continue;
    auto target = std::make_shared<WaitingTarget>();
    route.answer(std::move(request), Reply(target));
    return target->wait();
  }
  ADD_FAILURE() << "there is no route " << pattern;
  return {};
}

}  // namespace bide::server
