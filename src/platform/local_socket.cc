#include "platform/local_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "platform/disk.h"
#include "platform/fatal.h"

namespace bide::platform {
namespace {

constexpr int kBacklog = 128;
constexpr std::size_t kMostPieces = 64;

// A path that does not fit is reached through the directory's descriptor.
sockaddr_un address_of(const std::string& directory, const Descriptor& opened, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = directory + "/" + name;
  if (path.size() >= sizeof address.sun_path) path = "/proc/self/fd/" + std::to_string(opened.get()) + "/" + name;
  require(path.size() < sizeof address.sun_path, "the name of a socket is short");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* plain(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

Descriptor new_socket() { return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

Descriptor open_directory(const std::string& directory) { return Descriptor::open(directory, O_PATH | O_DIRECTORY); }

}  // namespace

Result<LocalSocket> LocalSocket::connect(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  const Descriptor opened = open_directory(directory);
  if (!opened.valid()) return system_error(errno, "open", directory);
  Descriptor descriptor = new_socket();
  if (!descriptor.valid()) return system_error(errno, "make a socket for", path);
  const sockaddr_un address = address_of(directory, opened, name);
  int outcome = 0;
  do {
    outcome = ::connect(descriptor.get(), plain(address), sizeof address);
  } while (outcome != 0 && errno == EINTR);
  if (outcome != 0 && (errno == ECONNREFUSED || errno == EAGAIN)) {
    return Error{ErrorCode::kUnavailable, "nobody answers at " + path};
  }
  if (outcome != 0) return system_error(errno, "connect to", path);
  return LocalSocket(std::move(descriptor));
}

Transfer LocalSocket::send(std::span<const std::string_view> pieces) {
  iovec parts[kMostPieces];
  const std::size_t count = std::min(pieces.size(), kMostPieces);
  for (std::size_t i = 0; i < count; ++i) parts[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(descriptor_.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
  return {.closed = errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS};
}

Transfer LocalSocket::receive(char* into, std::size_t size) {
  ssize_t got = 0;
  do {
    got = ::recv(descriptor_.get(), into, size, 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return {.bytes = static_cast<std::size_t>(got)};
  return {.closed = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)};
}

bool LocalSocket::is_trusted() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(descriptor_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

Result<LocalListener> LocalListener::listen(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  Descriptor opened = open_directory(directory);
  if (!opened.valid()) return system_error(errno, "open", directory);
  Descriptor descriptor = new_socket();
  if (!descriptor.valid()) return system_error(errno, "make a socket for", path);
  if (::unlinkat(opened.get(), name.c_str(), 0) != 0 && errno != ENOENT) return system_error(errno, "remove", path);
  // Before it has a name, so that there is no moment in which others may connect.
  if (::fchmod(descriptor.get(), 0600) != 0) return system_error(errno, "protect", path);
  const sockaddr_un address = address_of(directory, opened, name);
  if (::bind(descriptor.get(), plain(address), sizeof address) != 0) {
    return system_error(errno, "create", path, Purpose::kCreate);
  }
  if (::listen(descriptor.get(), kBacklog) != 0) return system_error(errno, "listen at", path);
  return LocalListener(std::move(opened), std::move(descriptor), name);
}

LocalListener::~LocalListener() {
  if (descriptor_.valid()) ::unlinkat(directory_.get(), name_.c_str(), 0);
}

Result<std::optional<LocalSocket>> LocalListener::accept() {
  Descriptor descriptor(::accept4(descriptor_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (descriptor.valid()) return std::optional(LocalSocket(std::move(descriptor)));
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    return system_error(errno, "accept at", name_);
  }
  return std::optional<LocalSocket>();
}

Waker::Waker() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  require(descriptor_.valid(), "the kernel gives an eventfd");
}

void Waker::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_.get(), &one, sizeof one);
}

void Waker::clear() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptor_.get(), &count, sizeof count);
}

void wait_ready(std::span<Readiness> all, std::optional<std::chrono::milliseconds> at_most) {
  thread_local std::vector<pollfd> polled;
  polled.clear();
  for (const Readiness& each : all) {
    const int events = (each.read ? POLLIN : 0) | (each.write ? POLLOUT : 0);
    polled.push_back({events != 0 ? each.descriptor : -1, static_cast<short>(events), 0});
  }
  int timeout = -1;
  if (at_most) {
    const auto most = std::chrono::milliseconds(std::numeric_limits<int>::max());
    timeout = static_cast<int>(std::clamp(*at_most, std::chrono::milliseconds(0), most).count());
  }
  const int ready = ::poll(polled.data(), polled.size(), timeout);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int events = ready > 0 ? polled[i].revents : 0;
    const bool broken = (events & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    all[i].read = all[i].read && (broken || (events & POLLIN) != 0);
    all[i].write = all[i].write && (broken || (events & POLLOUT) != 0);
  }
}

}  // namespace bide::platform
