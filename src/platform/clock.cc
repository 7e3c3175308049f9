#include "platform/clock.h"

#include <fcntl.h>
#include <unistd.h>
#include <ctime>

#include "platform/descriptor.h"
#include "platform/fatal.h"

namespace bide::platform {
namespace {

std::int64_t read_us(clockid_t id) {
  timespec now{};
  require(::clock_gettime(id, &now) == 0, "the system's clocks can be read");
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

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
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

}  // namespace bide::platform
