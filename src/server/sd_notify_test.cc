#include "server/sd_notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "support/temporary_directory.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;

// What systemd does: a datagram socket, by a path or by a name in the abstract namespace.
class Receiver {
 public:
  explicit Receiver(const std::string& address) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address.data(), address.size());
    if (address[0] == '@') name.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name), size), 0) << std::strerror(errno);
  }
  std::string receive() const {
    char buffer[4096];
    const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(buffer, static_cast<std::size_t>(size));
  }

 private:
  platform::Descriptor socket_;
};

TEST(SdNotify, TellsHowTheServerIsOverASocketWithAPath) {
  const support::TemporaryDirectory directory;
  const Receiver receiver(directory.path() + "/notify");
  const SdNotify manager(directory.path() + "/notify");
  ASSERT_TRUE(manager.is_there());
  EXPECT_TRUE(manager.ready("listening on 127.0.0.1:7070"));
  EXPECT_EQ(receiver.receive(), "READY=1\nSTATUS=listening on 127.0.0.1:7070");
  EXPECT_TRUE(manager.status("3 workers\nSTOPPING=1"));
  EXPECT_EQ(receiver.receive(), "STATUS=3 workers STOPPING=1");
  EXPECT_TRUE(manager.alive());
  EXPECT_EQ(receiver.receive(), "WATCHDOG=1");
  EXPECT_TRUE(manager.extend_timeout(5s));
  EXPECT_EQ(receiver.receive(), "EXTEND_TIMEOUT_USEC=5000000");
  EXPECT_TRUE(manager.stopping("finishing 2 requests"));
  EXPECT_EQ(receiver.receive(), "STOPPING=1\nSTATUS=finishing 2 requests");
}

TEST(SdNotify, TellsItInTheAbstractNamespaceToo) {
  const std::string name = "@bide-test-" + std::to_string(::getpid());
  const Receiver receiver(name);
  EXPECT_TRUE(SdNotify(name).ready("ok"));
  EXPECT_EQ(receiver.receive(), "READY=1\nSTATUS=ok");
}

TEST(SdNotify, IsSilentWhenNobodyListens) {
  EXPECT_FALSE(SdNotify("").ready("ok"));
  EXPECT_FALSE(SdNotify("relative/path").is_there());
  EXPECT_FALSE(SdNotify("@" + std::string(200, 'x')).is_there());
  const support::TemporaryDirectory directory;
  EXPECT_FALSE(SdNotify(directory.path() + "/gone").ready("ok"));
}

TEST(SdNotify, DoesNotWaitForAReceiverThatDoesNotRead) {
  const std::string name = "@bide-test-full-" + std::to_string(::getpid());
  const Receiver receiver(name);
  const SdNotify manager(name);
  int sent = 0;
  while (sent < 1'000'000 && manager.alive()) ++sent;
  EXPECT_LT(sent, 1'000'000);
}

TEST(SdNotify, TakesWhatTheEnvironmentSaysAndLeavesNothingToPrograms) {
  const std::string name = "@bide-test-env-" + std::to_string(::getpid());
  const Receiver receiver(name);
  ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  ::setenv("WATCHDOG_USEC", "10000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  const SdNotify manager = SdNotify::from_environment();
  EXPECT_EQ(manager.alive_every(), 5s);
  EXPECT_TRUE(manager.alive());
  EXPECT_EQ(receiver.receive(), "WATCHDOG=1");
  for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
    EXPECT_EQ(std::getenv(variable), nullptr);
  EXPECT_FALSE(SdNotify::from_environment().is_there());
}

TEST(SdNotify, KeepsQuietAboutAWatchdogThatIsForAnotherProcess) {
  ::setenv("NOTIFY_SOCKET", "@x", 1);
  ::setenv("WATCHDOG_USEC", "10000000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(SdNotify::from_environment().alive_every(), std::nullopt);
  ::setenv("NOTIFY_SOCKET", "@x", 1);
  ::setenv("WATCHDOG_USEC", "soon", 1);
  EXPECT_EQ(SdNotify::from_environment().alive_every(), std::nullopt);
}

}  // namespace
}  // namespace bide::server
