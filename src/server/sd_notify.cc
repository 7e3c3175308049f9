#include "server/sd_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace bide::server {
namespace {

std::string take_variable(const char* name) {
  const char* const value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// In one line: a line of its own would be another assignment.
std::string status_line(std::string_view status) {
  std::string line = "STATUS=" + std::string(status);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

SdNotify SdNotify::from_environment() {
  std::string address = take_variable("NOTIFY_SOCKET");
  const auto watchdog = number(take_variable("WATCHDOG_USEC"));
  const std::string pid = take_variable("WATCHDOG_PID");
  const bool for_us = pid.empty() || number(pid) == ::getpid();
  if (!watchdog || *watchdog <= 0 || !for_us) return SdNotify(std::move(address));
  return SdNotify(std::move(address), std::chrono::microseconds(*watchdog));
}

SdNotify::SdNotify(std::string address, std::optional<std::chrono::microseconds> watchdog)
    : address_(std::move(address)), watchdog_(watchdog) {
  const bool is_named = address_.size() > 1 && (address_[0] == '/' || address_[0] == '@');
  if (!is_named || address_.size() >= sizeof(sockaddr_un::sun_path)) return;
  socket_ = platform::Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool SdNotify::ready(std::string_view status) const { return send("READY=1\n" + status_line(status)); }
bool SdNotify::status(std::string_view status) const { return send(status_line(status)); }
bool SdNotify::stopping(std::string_view status) const { return send("STOPPING=1\n" + status_line(status)); }
bool SdNotify::alive() const { return send("WATCHDOG=1"); }

bool SdNotify::extend_timeout(std::chrono::microseconds time) const {
  return send("EXTEND_TIMEOUT_USEC=" + std::to_string(time.count()));
}

std::optional<std::chrono::microseconds> SdNotify::alive_every() const {
  if (!is_there() || !watchdog_) return std::nullopt;
  return *watchdog_ / 2;
}

bool SdNotify::send(std::string text) const {
  if (!is_there()) return false;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  std::size_t size = offsetof(sockaddr_un, sun_path) + address_.size();
  // A name in the abstract namespace begins with a zero byte and ends with its length; a path ends with a zero byte.
  if (address_[0] == '@')
    to.sun_path[0] = '\0';
  else
    ++size;
  ssize_t sent = -1;
  do {
    sent = ::sendto(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
                    static_cast<socklen_t>(size));
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(text.size());
}

}  // namespace bide::server
