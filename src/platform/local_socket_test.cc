#include "platform/local_socket.h"

#include <sys/stat.h>
#include <string>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace bide::platform {
namespace {

using support::TemporaryDirectory;

LocalSocket accept_one(LocalListener& listener) {
  Readiness waited{listener.descriptor(), true, false};
  wait_ready({&waited, 1}, std::nullopt);
  return std::move(**listener.accept());
}

void send(LocalSocket& socket, std::string_view text) {
  const Transfer sent = socket.send({&text, 1});
  ASSERT_EQ(sent.bytes, text.size());
}

std::string receive(LocalSocket& socket) {
  Readiness waited{socket.descriptor(), true, false};
  wait_ready({&waited, 1}, std::nullopt);
  std::string text(100, ' ');
  text.resize(socket.receive(text.data(), text.size()).bytes);
  return text;
}

TEST(LocalSocket, CarriesBytesBothWays) {
  const TemporaryDirectory directory;
  auto listener = LocalListener::listen(directory.path(), "socket");
  ASSERT_TRUE(listener) << listener.error().message;
  auto client = LocalSocket::connect(directory.path(), "socket");
  ASSERT_TRUE(client) << client.error().message;
  LocalSocket server = accept_one(*listener);
  send(*client, "question");
  EXPECT_EQ(receive(server), "question");
  send(server, "answer");
  EXPECT_EQ(receive(*client), "answer");
  EXPECT_TRUE(server.is_trusted());
}

TEST(LocalSocket, IsReachedByAPathThatIsTooLongForAnAddress) {
  const TemporaryDirectory directory;
  std::string path = directory.path();
  for (int i = 0; i < 4; ++i) {
    path += "/" + std::string(60, 'x');
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  }
  auto listener = LocalListener::listen(path, "socket");
  ASSERT_TRUE(listener) << listener.error().message;
  auto client = LocalSocket::connect(path, "socket");
  ASSERT_TRUE(client) << client.error().message;
  send(*client, "far away");
  LocalSocket server = accept_one(*listener);
  EXPECT_EQ(receive(server), "far away");
}

TEST(LocalSocket, OnlyItsUserMayConnect) {
  const TemporaryDirectory directory;
  auto listener = LocalListener::listen(directory.path(), "socket");
  ASSERT_TRUE(listener);
  struct stat found {};
  ASSERT_EQ(::stat((directory.path() + "/socket").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST(LocalSocket, NobodyListeningIsToldApartFromNoSuchFile) {
  const TemporaryDirectory directory;
  EXPECT_EQ(LocalSocket::connect(directory.path(), "socket").error().code, ErrorCode::kNotFound);
  auto listener = LocalListener::listen(directory.path(), "socket");
  ASSERT_TRUE(listener);
  const std::string aside = directory.path() + "/aside";
  // As a process leaves it behind that was killed.
  ASSERT_EQ(std::rename((directory.path() + "/socket").c_str(), aside.c_str()), 0);
  { const LocalListener gone = std::move(*listener); }
  EXPECT_EQ(LocalSocket::connect(directory.path(), "aside").error().code, ErrorCode::kUnavailable);
}

TEST(LocalSocket, ListeningTakesThePlaceOfAFileLeftBehind) {
  const TemporaryDirectory directory;
  auto first = LocalListener::listen(directory.path(), "socket");
  ASSERT_TRUE(first);
  auto second = LocalListener::listen(directory.path(), "socket");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE(LocalSocket::connect(directory.path(), "socket"));
}

TEST(LocalSocket, TheEndOfTheOtherSideIsNoticed) {
  const TemporaryDirectory directory;
  auto listener = LocalListener::listen(directory.path(), "socket");
  ASSERT_TRUE(listener);
  auto client = LocalSocket::connect(directory.path(), "socket");
  ASSERT_TRUE(client);
  { const LocalSocket server = accept_one(*listener); }
  Readiness waited{client->descriptor(), true, false};
  wait_ready({&waited, 1}, std::nullopt);
  EXPECT_TRUE(waited.read);
  char byte = 0;
  EXPECT_TRUE(client->receive(&byte, 1).closed);
  const std::string_view text = "x";
  EXPECT_TRUE(client->send({&text, 1}).closed);
}

TEST(Waker, WakesWhoeverWaits) {
  Waker waker;
  Readiness waited{waker.descriptor(), true, false};
  wait_ready({&waited, 1}, std::chrono::milliseconds(0));
  EXPECT_FALSE(waited.read);
  waker.wake();
  waited.read = true;
  wait_ready({&waited, 1}, std::nullopt);
  EXPECT_TRUE(waited.read);
  waker.clear();
  wait_ready({&waited, 1}, std::chrono::milliseconds(0));
  EXPECT_FALSE(waited.read);
}

}  // namespace
}  // namespace bide::platform
