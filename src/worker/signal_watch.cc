#include "worker/worker_state.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

namespace bide::worker {

namespace {

constexpr std::array kSignals = {SIGTERM, SIGINT};
constexpr std::size_t kWatches = 64;

// What the signal handler uses, which may take no lock. It is never freed: a handler that began before a watch ended may
// still post to its place afterwards. Whoever has the place by then looks at the count, and finds nothing new.
struct Place {
  Place() { sem_init(&arrived, 0, 0); }

  std::atomic<bool> taken = false;
  sem_t arrived;
};
std::array<Place, kWatches> places;  // A watch that finds none is not told.
std::atomic<unsigned> signals = 0;   // Ever seen.

std::mutex mutex;  // Guards everything below.
int alive = 0;
std::array<struct sigaction, kSignals.size()> before;

extern "C" void bide_worker_on_signal(int) {
  const int saved_errno = errno;
  signals.fetch_add(1);
  for (Place& place : places) {
    if (place.taken.load()) sem_post(&place.arrived);
  }
  errno = saved_errno;
}

}  // namespace

SignalWatch::SignalWatch(std::function<void(int count)> told) : told_(std::move(told)) {
  const auto free = std::find_if(places.begin(), places.end(), [](Place& place) { return !place.taken.exchange(true); });
  if (free != places.end()) {
    arrived_ = &free->arrived;
    thread_ = std::thread([this, before_all = signals.load()] {
      for (int count = 0; !ended_.load();) {
        while (sem_wait(arrived_) != 0 && errno == EINTR) {
        }
        while (!ended_.load() && signals.load() - before_all > static_cast<unsigned>(count)) told_(++count);
      }
    });
  }
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
  if (arrived_ == nullptr) return;
  ended_.store(true);
  sem_post(arrived_);
  thread_.join();
  const auto place = std::find_if(places.begin(), places.end(), [&](Place& each) { return &each.arrived == arrived_; });
  place->taken.store(false);
}

}  // namespace bide::worker
