// A client of a real server, with a network between them that cuts connections in the middle of whatever they carry,
// and a server that is restarted: nothing that was confirmed is lost, and no job is in the store twice.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "bide/wait.h"
#include "brokers/remote/remote_broker.h"
#include "server/server.h"
#include "support/seeded_random.h"
#include "support/tcp_proxy.h"
#include "support/temporary_directory.h"

namespace bide {
namespace {

using namespace std::chrono_literals;
using brokers::remote::RemoteBroker;
using brokers::remote::RemoteSettings;
using support::TcpProxy;

class RealServer {
 public:
  RealServer() { start(); }

  void start() {
    server::ServerOptions options;
    options.url = "bide:" + directory_.path() + "/data?durability=os";
    options.listen = {"127.0.0.1:0"};
    options.local_without_token = true;
    options.log.level = server::LogLevel::kError;
    auto started = server::Server::start(std::move(options));
    if (!started) throw std::runtime_error("the server does not start: " + started.error().message);
    server_ = std::move(*started);
    const std::string url = server_->urls().front();
    port_ = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }
  // Without a word to anybody.
  void cut_off() { server_.reset(); }

  std::uint16_t port() const { return port_; }

 private:
  support::TemporaryDirectory directory_;
  std::unique_ptr<server::Server> server_;
  std::uint16_t port_ = 0;
};

std::shared_ptr<RemoteBroker> connect(std::uint16_t port) {
  RemoteSettings settings;
  settings.base = "http://127.0.0.1:" + std::to_string(port);
  settings.patience = 30s;
  auto opened = RemoteBroker::open(settings);
  if (!opened) throw std::runtime_error("the server does not answer: " + opened.error().message);
  return *opened;
}

Job job(int number) {
  Job made;
  made.kind = "work";
  made.body = "number " + std::to_string(number);
  return made;
}

// Settles everything that comes, and remembers what was confirmed.
class Consumer {
 public:
  explicit Consumer(Broker& broker) : broker_(broker) {
    auto subscribed =
        broker.subscribe({.credit = 50, .lease = 1s}, [this](std::vector<Lease> leases) { take(std::move(leases)); });
    if (!subscribed) throw std::runtime_error(subscribed.error().message);
    subscription_ = std::move(*subscribed);
  }
  ~Consumer() {
    subscription_.reset();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_ == 0; });
  }

  bool wait_for(std::size_t count, std::chrono::seconds at_most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, at_most, [&] { return done_.size() >= count; });
  }
  std::set<JobId> done() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }

 private:
  void take(std::vector<Lease> leases) {
    std::vector<Settlement> settlements;
    for (const Lease& lease : leases) settlements.push_back({{lease.job.id, lease.token}, Done{}, {}});
    {
      const std::lock_guard lock(mutex_);
      under_way_ += 1;
    }
    broker_.settle(settlements, [this, settlements](const Result<std::vector<Status>>& statuses) {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; statuses && i < statuses->size(); ++i) {
        if ((*statuses)[i]) done_.insert(settlements[i].lease.id);
      }
      under_way_ -= 1;
      changed_.notify_all();
    });
  }

  Broker& broker_;
  mutable std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  int under_way_ = 0;
  std::set<JobId> done_;
  std::unique_ptr<Subscription> subscription_;
};

// Fails the test, and goes on, where a job is refused.
std::set<JobId> enqueue_all(Broker& broker, int batches, int in_one) {
  std::set<JobId> ids;
  for (int batch = 0; batch < batches; ++batch) {
    std::vector<Job> jobs;
    for (int i = 0; i < in_one; ++i) jobs.push_back(job(batch * in_one + i));
    const auto results =
        wait<std::vector<Result<Enqueued>>>([&](auto done) { broker.enqueue(std::move(jobs), std::move(done)); });
    for (std::size_t i = 0; results && i < results->size(); ++i) {
      const Result<Enqueued>& result = (*results)[i];
      EXPECT_TRUE(result) << to_string(result.error().code) << ": " << result.error().message;
      if (result) ids.insert(result->id);
    }
  }
  return ids;
}

AuditReport audit(Inspector& inspector) {
  auto report = wait<AuditReport>([&](auto done) { inspector.audit(std::move(done)); });
  return report ? *report : AuditReport{.problems = {report.error().message}};
}

TEST(RemoteFaults, CutConnectionsLoseNothingAndStoreNothingTwice) {
  constexpr std::size_t kBatches = 150;
  constexpr int kInOne = 10;
  RealServer server;
  TcpProxy proxy(server.port());
  const auto broker = connect(proxy.port());
  std::atomic<bool> calm = false;
  std::jthread faults([&] {
    support::SeededRandom random(1);
    while (!calm) {
      const auto direction =
          random.next_below(2) == 0 ? TcpProxy::Direction::kToServer : TcpProxy::Direction::kToClient;
      proxy.cut_after(direction, random.next_below(8'000));
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + random.next_below(10)));
    }
  });
  std::set<JobId> ids;
  std::set<JobId> done;
  {
    Consumer consumer(*broker);
    // However little the other thread gets to run: there are enough faults for a test of faults.
    while (ids.size() < kBatches * kInOne || proxy.cuts() < 20) ids.merge(enqueue_all(*broker, 10, kInOne));
    calm = true;
    faults.join();
    proxy.cut_after(TcpProxy::Direction::kToServer, ~0ull);
    proxy.cut_after(TcpProxy::Direction::kToClient, ~0ull);
    EXPECT_TRUE(consumer.wait_for(ids.size(), 60s));
    done = consumer.done();
  }
  EXPECT_EQ(done, ids);
  const AuditReport report = audit(*broker);
  EXPECT_TRUE(report.ok()) << report.problems.front();
  EXPECT_EQ(report.accepted, ids.size());
  EXPECT_EQ(report.done, ids.size());
}

TEST(RemoteFaults, AServerThatIsRestartedIsAPauseForItsClients) {
  RealServer server;
  TcpProxy proxy(server.port());
  const auto broker = connect(proxy.port());
  std::atomic<bool> calm = false;
  std::atomic<int> restarts = 0;
  std::jthread faults([&] {
    while (!calm) {
      std::this_thread::sleep_for(100ms);
      server.cut_off();
      server.start();
      proxy.lead_to(server.port());
      restarts += 1;
    }
  });
  std::set<JobId> ids;
  std::set<JobId> done;
  {
    Consumer consumer(*broker);
    while (restarts < 5) ids.merge(enqueue_all(*broker, 10, 10));
    calm = true;
    faults.join();
    EXPECT_TRUE(consumer.wait_for(ids.size(), 60s));
    done = consumer.done();
  }
  EXPECT_EQ(done, ids);
  const AuditReport report = audit(*broker);
  EXPECT_TRUE(report.ok()) << report.problems.front();
  EXPECT_EQ(report.accepted, ids.size());
}

}  // namespace
}  // namespace bide
