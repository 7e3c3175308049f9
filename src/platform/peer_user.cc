#include "platform/local_socket.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace bide::platform {

namespace {

// The end of a connection as the kernel is asked for it; its family, or AF_UNSPEC. IPv4 on a socket for both is IPv4: so
// the other end has it.
std::uint8_t put_end(const sockaddr_storage& address, __be32 (&words)[4], __be16& port) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    std::memcpy(words, &v4.sin_addr, sizeof v4.sin_addr);
    port = v4.sin_port;
    return AF_INET;
  }
  if (address.ss_family != AF_INET6) return AF_UNSPEC;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  port = v6.sin6_port;
  const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
  if (is_v4) {
    std::memcpy(words, v6.sin6_addr.s6_addr + 12, 4);
  } else {
    std::memcpy(words, &v6.sin6_addr, sizeof v6.sin6_addr);
  }
  return is_v4 ? AF_INET : AF_INET6;
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

// One socket of this machine by both of its ends, asked of the kernel (sock_diag(7)): it does not look through all of them.
std::optional<uid_t> owner_of(const sockaddr_storage& from, const sockaddr_storage& to) {
  struct {
    nlmsghdr head;
    inet_diag_req_v2 body;
  } request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0u;
  request.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  request.body.sdiag_family = put_end(from, request.body.id.idiag_src, request.body.id.idiag_sport);
  if (request.body.sdiag_family == AF_UNSPEC ||
      put_end(to, request.body.id.idiag_dst, request.body.id.idiag_dport) != request.body.sdiag_family) {
    return std::nullopt;
  }
  const int kernel = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (kernel < 0) return std::nullopt;
  alignas(nlmsghdr) char answer[8192];
  ssize_t got = ::send(kernel, &request, sizeof request, 0);
  if (got >= 0) got = ::recv(kernel, answer, sizeof answer, 0);
  ::close(kernel);
  nlmsghdr head{};
  inet_diag_msg found{};
  if (got < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof found)) return std::nullopt;
  std::memcpy(&head, answer, sizeof head);
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&found, answer + NLMSG_HDRLEN, sizeof found);
  // Without an inode no process has it any more, and the user is not told.
  return found.idiag_inode == 0 ? std::nullopt : std::optional<uid_t>(found.idiag_uid);
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
  // Both ends of a connection within this machine have an address of it, and here that is the loopback's.
  if (!is_loopback(theirs)) return std::nullopt;
  return owner_of(theirs, ours);
}

}  // namespace bide::platform
