// POST and GET /v1/backup.

#include <filesystem>
#include <string>
#include <thread>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

class BackupRoutes : public ApiBench {
 protected:
  Response ended() {
    for (;;) {
      Response now = get("/v1/backup");
      if (!field_of(now.body, "finished").empty()) return now;
      std::this_thread::yield();
    }
  }
};

TEST_F(BackupRoutes, MakesOneInTheServersDirectoryAndTellsHowItWent) {
  open({.backup_directory = folder_.path() + "/saved"});
  EXPECT_EQ(field_of(get("/v1/backup").body, "state"), "none");
  enqueue(R"({"kind":"a"})");
  const Response begun = post("/v1/backup", R"({"target":"nightly"})");
  EXPECT_EQ(begun.status, 202) << begun.body;
  EXPECT_EQ(field_of(begun.body, "target"), "nightly");
  const Response made = ended();
  EXPECT_EQ(field_of(made.body, "state"), "done") << made.body;
  EXPECT_EQ(field_of(made.body, "live_jobs"), "1");
  EXPECT_EQ(made.body.find(folder_.path()), std::string::npos) << made.body;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/saved/nightly/journal"));
}

TEST_F(BackupRoutes, NeverLeavesThatDirectory) {
  open({.backup_directory = folder_.path() + "/saved"});
  for (const std::string target : {"", ".", "..", "../data", "a/b", "/tmp/x", ".hidden"}) {
    const Response refused = post("/v1/backup", R"({"target":")" + target + R"("})");
    EXPECT_EQ(refused.status, 422) << target << refused.body;
  }
  expect_problem(post("/v1/backup", "{}"), 422, "missing_field", "target");
}

TEST_F(BackupRoutes, WithoutADirectoryThereIsNone) {
  open({});
  expect_problem(post("/v1/backup", R"({"target":"a"})"), 501, "unsupported", "backup_directory");
}

}  // namespace
}  // namespace bide::server
