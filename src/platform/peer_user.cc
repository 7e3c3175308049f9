#include "platform/peer_user.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace bide::platform {

namespace {

// An end of a connection as /proc/net/tcp has it: words as they lie in memory, in hex.
struct End {
  bool is_v6 = false;
  std::string text;
};

std::optional<End> end_of(const sockaddr_storage& address) {
  const auto word = [](const void* at) {
    std::uint32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    char text[9];
    std::snprintf(text, sizeof text, "%08X", static_cast<unsigned>(value));
    return std::string(text);
  };
  const auto port = [](in_port_t value) {
    char text[6];
    std::snprintf(text, sizeof text, ":%04X", static_cast<unsigned>(ntohs(value)));
    return std::string(text);
  };
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return End{false, word(&v4.sin_addr) + port(v4.sin_port)};
  }
  if (address.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  const unsigned char* const bytes = v6.sin6_addr.s6_addr;
  // IPv4 on a socket for both: the other end is in the table for IPv4.
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return End{false, word(bytes + 12) + port(v6.sin6_port)};
  return End{true, word(bytes) + word(bytes + 4) + word(bytes + 8) + word(bytes + 12) + port(v6.sin6_port)};
}

std::optional<uid_t> owner_of(const End& from, const End& to) {
  std::ifstream table(from.is_v6 ? "/proc/net/tcp6" : "/proc/net/tcp");
  const std::string wanted = " " + from.text + " " + to.text + " ";
  for (std::string line; std::getline(table, line);) {
    const std::size_t at = line.find(wanted);
    if (at == std::string::npos) continue;
    std::istringstream rest(line.substr(at + wanted.size()));
    std::string state, queues, timer, retransmits;
    unsigned long user = 0, timeout = 0, inode = 0;
    rest >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
    // Without an inode no process has it any more, and the user is not told.
    if (rest.fail() || inode == 0) return std::nullopt;
    return static_cast<uid_t>(user);
  }
  return std::nullopt;
}

}  // namespace

std::optional<uid_t> peer_user(int socket) {
  sockaddr_storage ours{}, theirs{};
  socklen_t our_length = sizeof ours, their_length = sizeof theirs;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&ours), &our_length) != 0) return std::nullopt;
  if (ours.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return std::nullopt;
    return credentials.uid;
  }
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&theirs), &their_length) != 0) return std::nullopt;
  const std::optional<End> from = end_of(theirs);
  const std::optional<End> to = end_of(ours);
  if (!from || !to) return std::nullopt;
  return owner_of(*from, *to);
}

}  // namespace bide::platform
