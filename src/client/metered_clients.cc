#include "client/metered_clients.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <utility>

#include "bide/metrics.h"
#include "metrics/exposition.h"
#include "metrics/metered_broker.h"

namespace bide::client {

namespace {

// The queues of several brokers, as far as they come in time.
class QueueAnswers {
 public:
  void expect() {
    std::lock_guard lock(mutex_);
    ++missing_;
  }
  void take(Result<std::vector<QueueInfo>> queues) {
    std::lock_guard lock(mutex_);
    if (queues) queues_.insert(queues_.end(), queues->begin(), queues->end());
    --missing_;
    changed_.notify_all();
  }
  std::vector<QueueInfo> wait(Milliseconds patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return missing_ == 0; });
    return queues_;
  }

 private:
  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::size_t missing_ = 0;
  std::vector<QueueInfo> queues_;
};

}  // namespace

MeteredClients& MeteredClients::instance() {
  static MeteredClients* const all = new MeteredClients();  // Clients may outlive every static object.
  return *all;
}

Result<brokers::OpenedBroker> MeteredClients::open(std::string_view url) {
  auto opened = brokers::open_broker(url, {.on_commit = [counted = metrics_](auto time) { counted->commit_took(time); },
                                           .on_damage =
                                               [counted = metrics_](const auto& damage) {
                                                 counted->damage_found(damage.file, damage.offset);
                                                 std::fprintf(stderr, "bide: warning: the store is damaged: %s\n",
                                                              damage.text.c_str());
                                               }});
  if (!opened) return opened;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(opened_, [](const Opened& each) { return each.broker.expired(); });
    opened_.push_back({opened->broker, opened->inspector});
  }
  opened->broker = std::make_shared<metrics::MeteredBroker>(std::move(opened->broker), metrics_);
  return opened;
}

std::string MeteredClients::text(Milliseconds patience) {
  std::vector<Opened> all;
  {
    std::lock_guard lock(mutex_);
    all = opened_;
  }
  const auto answers = std::make_shared<QueueAnswers>();
  Pressure pressure;
  for (const Opened& each : all) {
    const auto broker = each.broker.lock();
    const auto inspector = each.inspector.lock();
    if (!broker) continue;
    if (const Pressure its = broker->pressure(); its.level > pressure.level) pressure = its;
    if (!inspector || !broker->capabilities().inspect) continue;
    answers->expect();
    inspector->queues([answers](Result<std::vector<QueueInfo>> queues) { answers->take(std::move(queues)); });
  }
  const std::vector<QueueInfo> queues = answers->wait(patience);
  metrics::Exposition text;
  metrics_->write(text);
  metrics_->write_queues(text, queues, std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now()));
  metrics_->write_pressure(text, pressure);
  return text.take();
}

}  // namespace bide::client

namespace bide {

std::string metrics_text(Milliseconds patience) { return client::MeteredClients::instance().text(patience); }

}  // namespace bide
