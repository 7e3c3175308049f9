#include "platform/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <ctime>
#include <thread>
#include <utility>

#include "platform/descriptor.h"
#include "platform/fatal.h"
#include "platform/local_socket.h"

namespace bide::platform {
namespace {

std::int64_t read_us(clockid_t id) {
  timespec now{};
  require(::clock_gettime(id, &now) == 0, "the system's clocks can be read");
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

// A timer of the wall clock, too far away to ever ring, is cancelled when that clock is set, and also when the machine
// wakes up: the wall clock has gone on meanwhile and CLOCK_MONOTONIC, on which threads sleep, has not.
class RealWatch {
 public:
  explicit RealWatch(std::function<void()> jumped)
      : jumped_(std::move(jumped)),
        timer_(::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC)),
        armed_(arm()),
        thread_([this] { run(); }) {}
  ~RealWatch() {
    stop_.wake();
    thread_.join();
  }
  RealWatch(const RealWatch&) = delete;
  RealWatch& operator=(const RealWatch&) = delete;

 private:
  static constexpr std::time_t kFarAway = std::time_t{1} << 40;
  static constexpr int kWithoutTimerMs = 1000;

  bool arm() const {
    const itimerspec never{.it_interval = {}, .it_value = {.tv_sec = kFarAway, .tv_nsec = 0}};
    const int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
    return timer_.valid() && ::timerfd_settime(timer_.get(), flags, &never, nullptr) == 0;
  }

  void run() {
    pollfd polled[] = {{stop_.descriptor(), POLLIN, 0}, {timer_.get(), POLLIN, 0}};
    for (;;) {
      const int ready = ::poll(polled, armed_ ? 2 : 1, armed_ ? -1 : kWithoutTimerMs);
      if (ready > 0 && polled[0].revents != 0) return;
      // It stays armed. Read before it is told: what happens from here on is found by the next poll.
      std::uint64_t times = 0;
      if (armed_) [[maybe_unused]] const auto cancelled = ::read(timer_.get(), &times, sizeof times);
      jumped_();
    }
  }

  const std::function<void()> jumped_;
  const Descriptor timer_;
  const bool armed_;
  Waker stop_;
  std::thread thread_;
};

class RealClock final : public Clock {
 public:
  // CLOCK_MONOTONIC stands still while the machine sleeps; a lease or a delay must not.
  Instant now() const override { return {.wall_us = read_us(CLOCK_REALTIME), .elapsed_us = read_us(CLOCK_BOOTTIME)}; }

  // A time namespace has a CLOCK_BOOTTIME of its own.
  std::string boot() const override {
    const Descriptor file = Descriptor::open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    char text[64];
    const auto size = file.valid() ? ::read(file.get(), text, sizeof text) : 0;
    if (size < 36) return {};
    std::string boot(text, 36);
    const auto space = ::readlink("/proc/self/ns/time", text, sizeof text);
    if (space > 0) boot.append(" ").append(text, static_cast<std::size_t>(space));
    return boot;
  }

  std::shared_ptr<void> watch(std::function<void()> jumped) const override {
    return std::make_shared<RealWatch>(std::move(jumped));
  }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

}  // namespace bide::platform
