#include "server/auth/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_directory.h"

namespace bide::server {
namespace {

class TokenFileTest : public testing::Test {
 protected:
  Status add(const std::string& name) const {
    return change_tokens(path, [&](TokenList& tokens) {
      tokens.push_back({.name = name, .scopes = 1, .digest = digest_of(name)});
      return Status();
    });
  }

  support::TemporaryDirectory directory;
  const std::string path = directory.path() + "/tokens";
};

TEST_F(TokenFileTest, LiesInTheDataDirectory) {
  EXPECT_EQ(token_file_of("bide:./data"), "./data/tokens");
  EXPECT_EQ(token_file_of("bide:/var/lib/bide/?durability=os"), "/var/lib/bide/tokens");
  EXPECT_EQ(token_file_of("bide:./a%3fb%25"), "./a?b%/tokens");
  EXPECT_EQ(place_in_store("bide:./data", "accepted_callbacks"), "./data/accepted_callbacks");
  EXPECT_EQ(token_file_of("bide:"), std::nullopt);
  EXPECT_EQ(token_file_of("amqp://localhost"), std::nullopt);
}

TEST_F(TokenFileTest, HasNoTokensWhileItIsNotThere) {
  EXPECT_TRUE(read_tokens(path)->empty());
  EXPECT_EQ(stamp_of(path), FileStamp());
}

TEST_F(TokenFileTest, IsForItsOwnerOnlyAndReplacedAsAWhole) {
  const mode_t before = ::umask(0);
  ASSERT_TRUE(add("a"));
  ::umask(before);
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  const FileStamp first = stamp_of(path);
  ASSERT_TRUE(add("b"));
  EXPECT_NE(stamp_of(path), first);
  EXPECT_NE(stamp_of(path).inode, first.inode);
  EXPECT_EQ(read_tokens(path)->size(), 2u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST_F(TokenFileTest, StaysAsItWasWhenTheChangeFails) {
  ASSERT_TRUE(add("a"));
  const FileStamp before = stamp_of(path);
  const Status refused = change_tokens(path, [](TokenList& tokens) -> Status {
    tokens.clear();
    return Error{ErrorCode::kAlreadyExists, "no"};
  });
  EXPECT_EQ(refused.error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(stamp_of(path), before);
}

TEST_F(TokenFileTest, IsRefusedWhenOthersMayReadIt) {
  ASSERT_TRUE(add("a"));
  for (const mode_t mode : {0640u, 0604u, 0620u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto read = read_tokens(path);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kPermissionDenied);
    EXPECT_NE(read.error().message.find("chmod 600"), std::string::npos);
  }
}

TEST_F(TokenFileTest, IsRefusedWhenItIsNoFileOrHoldsSomethingElse) {
  std::filesystem::create_directory(path);
  EXPECT_FALSE(read_tokens(path));
  std::filesystem::remove(path);
  std::ofstream(path) << "hello\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(read_tokens(path).error().message, path + ":1: not a file of tokens: its first line is 'bide-tokens 1'");
  EXPECT_FALSE(add("a"));
  std::ofstream(path) << std::string(2 << 20, '#');
  EXPECT_NE(read_tokens(path).error().message.find("too large"), std::string::npos);
}

TEST_F(TokenFileTest, LosesNoChangeWhenSeveralAreMadeAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(add("t" + std::to_string(t) + "-" + std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_tokens(path)->size(), 20u);
}

TEST_F(TokenFileTest, BelongsToWhomTheDirectoryBelongsToWhenRootMakesIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(directory.path().c_str(), 4711, 4712), 0);
  ASSERT_TRUE(add("a"));
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_uid, 4711u);
  EXPECT_EQ(found.st_gid, 4712u);
}

TEST_F(TokenFileTest, CannotBeMadeWhereThereIsNoDirectory) {
  const Status made = change_tokens(directory.path() + "/none/tokens", [](TokenList&) { return Status(); });
  EXPECT_EQ(made.error().code, ErrorCode::kCannotCreate);
}

}  // namespace
}  // namespace bide::server
