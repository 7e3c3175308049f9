#include "platform/local_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/descriptor.h"

namespace bide::platform {
namespace {

// Both ends of a connection to a listener of this family, from a client of that one.
struct Ends {
  Descriptor client;
  Descriptor server;
};
Ends connect(int listening, int calling) {
  Descriptor listener(::socket(listening, SOCK_STREAM, 0));
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_v6 = listening == AF_INET6;
  EXPECT_EQ(::bind(listener.get(), is_v6 ? reinterpret_cast<sockaddr*>(&any6) : reinterpret_cast<sockaddr*>(&any4),
                   is_v6 ? sizeof any6 : sizeof any4),
            0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  sockaddr_in6 bound{};
  socklen_t length = sizeof bound;
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length), 0);
  Ends ends{Descriptor(::socket(calling, SOCK_STREAM, 0)), Descriptor()};
  sockaddr_in6 to6 = bound;
  to6.sin6_addr = in6addr_loopback;
  any4.sin_port = bound.sin6_port;  // Both families have it in the same place.
  const bool calls_v6 = calling == AF_INET6;
  EXPECT_EQ(::connect(ends.client.get(), calls_v6 ? reinterpret_cast<sockaddr*>(&to6) : reinterpret_cast<sockaddr*>(&any4),
                      calls_v6 ? sizeof to6 : sizeof any4),
            0);
  ends.server = Descriptor(::accept(listener.get(), nullptr, nullptr));
  return ends;
}

TEST(PeerUser, OfATcpConnectionIsWhoCalled) {
  const Ends ends = connect(AF_INET, AF_INET);
  EXPECT_EQ(peer_user(ends.server.get()), ::getuid());
  EXPECT_EQ(peer_user(ends.client.get()), ::getuid());
}

TEST(PeerUser, IsFoundInEveryCombinationOfFamilies) {
  const Descriptor probe(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (!probe.valid() || ::bind(probe.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) != 0) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  const Ends v6 = connect(AF_INET6, AF_INET6);
  EXPECT_EQ(peer_user(v6.server.get()), ::getuid());
  const Ends mapped = connect(AF_INET6, AF_INET);
  EXPECT_EQ(peer_user(mapped.server.get()), ::getuid());
}

TEST(PeerUser, OfAUnixSocketIsWhoMadeIt) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const Descriptor one(pair[0]), other(pair[1]);
  EXPECT_EQ(peer_user(one.get()), ::getuid());
}

TEST(PeerUser, IsNotKnownOnceTheOtherEndIsClosed) {
  Ends ends = connect(AF_INET, AF_INET);
  ends.client = Descriptor();
  EXPECT_EQ(peer_user(ends.server.get()), std::nullopt);
}

}  // namespace
}  // namespace bide::platform
