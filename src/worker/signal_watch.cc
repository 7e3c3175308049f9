#include "worker/signal_watch.h"

#include <signal.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

namespace bide::worker {

namespace {

constexpr std::array kSignals = {SIGTERM, SIGINT};
constexpr std::size_t kWatches = 64;

// Read by the signal handler, which may take no lock. A watch that finds no room is not told.
std::array<std::atomic<sem_t*>, kWatches> watches;

std::mutex mutex;  // Guards everything below.
int alive = 0;
std::array<struct sigaction, kSignals.size()> before;

extern "C" void bide_worker_on_signal(int) {
  const int saved_errno = errno;
  for (auto& watch : watches) {
    if (sem_t* semaphore = watch.load(std::memory_order_acquire)) sem_post(semaphore);
  }
  errno = saved_errno;
}

}  // namespace

SignalWatch::SignalWatch(std::function<void(int count)> told) : told_(std::move(told)) {
  sem_init(&arrived_, 0, 0);
  for (auto& watch : watches) {
    sem_t* none = nullptr;
    if (watch.compare_exchange_strong(none, &arrived_)) break;
  }
  thread_ = std::thread([this] {
    for (int count = 1;; ++count) {
      while (sem_wait(&arrived_) != 0 && errno == EINTR) {
      }
      if (ended_.load()) return;
      told_(count);
    }
  });
  std::lock_guard lock(mutex);
  if (alive++ > 0) return;
  struct sigaction action {};
  action.sa_handler = bide_worker_on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before[i]);
}

SignalWatch::~SignalWatch() {
  {
    std::lock_guard lock(mutex);
    if (--alive == 0) {
      for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
    }
  }
  for (auto& watch : watches) {
    sem_t* ours = &arrived_;
    if (watch.compare_exchange_strong(ours, nullptr)) break;
  }
  ended_.store(true);
  sem_post(&arrived_);
  thread_.join();
  sem_destroy(&arrived_);
}

}  // namespace bide::worker
