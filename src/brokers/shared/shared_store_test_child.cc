// Another process on a data directory, told what to do line by line on its standard input; it answers likewise.
//
//   open               owner | client | error TEXT
//   enqueue N QUEUE    enqueued N
//   take N QUEUE       taken N            leases that are kept and never settled
//   work N QUEUE       worked N           leases that are settled as done
//   role               owner | client
//   close              closed

#include <condition_variable>
#include <iostream>
#include <mutex>
#include <sstream>

#include "bide/wait.h"
#include "brokers/shared/shared_store.h"

namespace {

using namespace bide;
using brokers::shared::SharedStore;

struct Basket {
  std::mutex mutex;  // Guards everything below.
  std::condition_variable arrived;
  std::vector<Lease> leases;

  LeaseSink sink() {
    return [this](std::vector<Lease> some) {
      std::lock_guard lock(mutex);
      for (Lease& lease : some) leases.push_back(std::move(lease));
      arrived.notify_all();
    };
  }
  std::vector<Lease> wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [&] { return leases.size() >= count; });
    return std::exchange(leases, {});
  }
};

struct Child {
  std::string directory;
  std::unique_ptr<SharedStore> store = {};
  std::vector<std::unique_ptr<Basket>> baskets = {};
  std::vector<std::unique_ptr<Subscription>> subscriptions = {};

  std::string role() const { return store->is_owner() ? "owner" : "client"; }

  std::string open() {
    engine::EngineOptions options;
    options.directory = directory;
    options.durability = engine::Durability::kOs;
    auto opened = SharedStore::open(std::move(options));
    if (!opened) return "error " + opened.error().message;
    store = std::move(*opened);
    return role();
  }

  std::string enqueue(int count, const std::string& queue) {
    std::vector<Job> jobs(static_cast<std::size_t>(count));
    for (Job& job : jobs) {
      job.kind = "work";
      job.queue = queue;
    }
    auto answers = wait<std::vector<Result<Enqueued>>>([&](auto done) { store->enqueue(jobs, std::move(done)); });
    return answers ? "enqueued " + std::to_string(answers->size()) : "error " + answers.error().message;
  }

  Basket& subscribe(int count, const std::string& queue) {
    baskets.push_back(std::make_unique<Basket>());
    subscriptions.push_back(
        std::move(store->subscribe({.queues = {{queue, 1}}, .credit = count, .worker = "child"}, baskets.back()->sink())
                      .value()));
    return *baskets.back();
  }

  std::string take(int count, const std::string& queue) {
    subscribe(count, queue).wait_for(static_cast<std::size_t>(count));
    return "taken " + std::to_string(count);
  }

  std::string work(int count, const std::string& queue) {
    Basket& basket = subscribe(64, queue);
    for (int worked = 0; worked < count;) {
      std::vector<Settlement> settlements;
      for (const Lease& lease : basket.wait_for(1)) {
        settlements.push_back({.lease = {lease.job.id, lease.token}, .outcome = Done{}});
      }
      worked += static_cast<int>(settlements.size());
      (void)wait<std::vector<Status>>([&](auto done) { store->settle(settlements, std::move(done)); });
    }
    return "worked " + std::to_string(count);
  }

  std::string close() {
    subscriptions.clear();
    store.reset();
    return "closed";
  }

  std::string obey(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    std::string queue = "default";
    int count = 0;
    words >> command >> count >> queue;
    if (command == "open") return open();
    if (command == "role") return role();
    if (command == "enqueue") return enqueue(count, queue);
    if (command == "take") return take(count, queue);
    if (command == "work") return work(count, queue);
    if (command == "close") return close();
    return "error unknown command " + line;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  Child child{.directory = argv[1]};
  for (std::string line; std::getline(std::cin, line);) std::cout << child.obey(line) << std::endl;
  return 0;
}
