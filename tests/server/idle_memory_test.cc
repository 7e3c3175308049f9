// What an idle connection costs. 5 000 of them may have 24 KiB each; most of that is the kernel's and TLS's to use, so
// ours is held to much less.

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>

#include "server/http_fixture.h"

namespace bide::server_tests {
namespace {

using IdleConnections = HttpFixture;

std::size_t allocated() { return ::mallinfo2().uordblks; }

TEST_F(IdleConnections, HoldLittleMemory) {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  // Both ends are in this process.
  const std::size_t count = std::min<std::size_t>(2'000, (files.rlim_cur - 100) / 2);
  start();
  expect_alive();
  std::vector<std::unique_ptr<RawClient>> clients;
  clients.reserve(count);
  const std::size_t before = allocated();
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<RawClient>(port_));
    // Each has been used, with a body that was worth a buffer.
    ASSERT_EQ(clients.back()->ask(post("/echo", std::string(50'000, 'a'))).status, 200);
  }
  const std::size_t each = (allocated() - before) / count;
  RecordProperty("bytes_each", static_cast<int>(each));
  // The last answer is here before the server has put its things away.
  while (server_->counts().held_bytes > 0) expect_alive();
  EXPECT_LT(each, 4096u) << "the client's side included";
  EXPECT_EQ(clients.front()->ask(get("/hello")).status, 200);
}

}  // namespace
}  // namespace bide::server_tests
