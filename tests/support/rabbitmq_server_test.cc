#include "support/rabbitmq_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "platform/descriptor.h"

namespace bide::support {
namespace {

// How many processes bear the folder in their environment.
int processes_of(const std::string& directory) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string mark = "BIDE_TEST_SERVER=" + directory;
    if (text.find(mark + '\0') != std::string::npos || text.ends_with(mark)) ++count;
  }
  return count;
}

TEST(RabbitmqServer, AnotherVersionIsUsedWhereItsFolderIsNamed) {
  const char* const before = std::getenv("BIDE_RABBITMQ_SBIN");
  const std::string kept = before == nullptr ? "" : before;
  ASSERT_EQ(setenv("BIDE_RABBITMQ_SBIN", "/no/such/folder", 1), 0);
  EXPECT_FALSE(RabbitmqServer::is_installed());
  ASSERT_EQ(setenv("BIDE_RABBITMQ_SBIN", kept.c_str(), 1), 0);
}

TEST(RabbitmqServer, KeepsWhatItHadThroughAKill) {
  if (!RabbitmqServer::is_installed()) GTEST_SKIP() << "rabbitmq-server is not installed";
  RabbitmqServer server;
  server.evaluate(R"(rabbit_amqqueue:declare(rabbit_misc:r(<<"/">>, queue, <<"kept">>), true, false,
                     [{<<"x-queue-type">>, longstr, <<"quorum">>}], none, <<"test">>))");
  const auto is_there = [&] {
    const std::vector<RabbitmqQueue> all = server.queues();
    return all.size() == 1 && all[0].name == "kept" && all[0].type == "quorum" && all[0].leader == 0;
  };
  EXPECT_TRUE(is_there());
  server.kill();
  EXPECT_FALSE(server.is_alive());
  EXPECT_THROW(server.evaluate("ok"), std::runtime_error);
  server.start();
  EXPECT_TRUE(is_there());
  server.delete_queue("kept");
  EXPECT_TRUE(server.queues().empty());
  EXPECT_THROW(server.evaluate("exit(wrong)"), std::runtime_error);
  EXPECT_EQ(server.evaluate(R"(io:format("~p", [application:get_env(rabbit,
                               dead_letter_worker_publisher_confirm_timeout)]))"),
            "{ok,3000}");
}

TEST(RabbitmqServer, LeavesNothingBehindWhenTheTestIsKilled) {
  if (!RabbitmqServer::is_installed()) GTEST_SKIP() << "rabbitmq-server is not installed";
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const platform::Descriptor from_child(ends[0]);
  platform::Descriptor to_us(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    const RabbitmqServer server;
    const std::string& path = server.directory();
    if (write(to_us.get(), path.data(), path.size()) < 0) _exit(1);
    for (;;) pause();
  }
  to_us = platform::Descriptor();
  std::string directory(4096, '\0');
  const ssize_t size = read(from_child.get(), directory.data(), directory.size());
  ASSERT_GT(size, 0);
  directory.resize(static_cast<std::size_t>(size));
  EXPECT_GE(processes_of(directory), 2) << "a node and an epmd";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (processes_of(directory) > 0 || std::filesystem::exists(directory)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << processes_of(directory) << " processes are left";
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace
}  // namespace bide::support
