// SdNotify: tells systemd how the server is (sd_notify(3)), over the datagram socket that $NOTIFY_SOCKET names.
// Without one every call does nothing. Safe to use from any thread; never waits.

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "platform/descriptor.h"

namespace bide::server {

class SdNotify {
 public:
  // By $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, which are removed: programs that we start are not the service.
  // Call it before there are other threads.
  static SdNotify from_environment();

  // `address` is a path, or a name in the abstract namespace after `@`. Empty: nobody listens.
  explicit SdNotify(std::string address, std::optional<std::chrono::microseconds> watchdog = {});

  bool is_there() const { return socket_.valid(); }

  // Each is false when it was not sent.
  bool ready(std::string_view status) const;
  bool status(std::string_view status) const;
  bool stopping(std::string_view status) const;
  bool alive() const;
  // Stopping takes longer than systemd would wait: so long from now.
  bool extend_timeout(std::chrono::microseconds time) const;

  // How often alive() is wanted: twice in the time after which systemd takes the server for dead. Nothing: never.
  std::optional<std::chrono::microseconds> alive_every() const;

 private:
  bool send(std::string text) const;

  std::string address_;
  std::optional<std::chrono::microseconds> watchdog_;
  platform::Descriptor socket_;
};

}  // namespace bide::server
