#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/api/api_test_bench.h"

namespace bide::server {
namespace {

class DeadGroups : public ApiBench {
 protected:
  void die(const std::string& kind, const std::string& error) {
    enqueue(R"({"kind":")" + kind + R"(","past":{"attempts":1,"dead_reason":"rejected","errors":[{"attempt":1,"at":)" +
            R"("2026-01-02T03:04:05Z","fault":"failed","text":")" + error + R"("}]}})");
  }
};

TEST_F(DeadGroups, AreOfOneKindAndOneErrorWithNumbersFolded) {
  for (int i = 0; i < 5; ++i) die("pack", "shelf " + std::to_string(i) + " is empty");
  die("pack", "no such street");
  die("send", "shelf 7 is empty");
  const Response answer = get("/v1/dead/groups");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(field_of(answer.body, "looked_at"), "7");
  EXPECT_EQ(field_of(answer.body, "complete"), "true");
  const auto groups = items_of(answer.body, "groups");
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(field_of(groups[0], "count"), "5");
  EXPECT_EQ(field_of(groups[0], "kind"), "pack");
  EXPECT_EQ(field_of(groups[0], "error"), "shelf # is empty");
  EXPECT_EQ(items_of(get("/v1/dead/groups?kind=send").body, "groups").size(), 1u);
}

TEST_F(DeadGroups, GiveTheIdsOfTheirJobsPageByPage) {
  for (int i = 0; i < 25; ++i) die("pack", i % 5 == 0 ? "no such street" : "shelf " + std::to_string(i) + " is empty");
  const auto groups = items_of(get("/v1/dead/groups").body, "groups");
  ASSERT_EQ(groups.size(), 2u);
  std::set<std::string> ids;
  std::size_t given = 0;
  std::string cursor;
  do {
    const Response page = get("/v1/dead/groups/" + field_of(groups[0], "id") + "?limit=3" + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(page.status, 200) << page.body;
    for (const std::string& id : items_of(page.body, "ids")) {
      ids.insert(id);
      ++given;
    }
    cursor = field_of(page.body, "next");
  } while (cursor != "null");
  EXPECT_EQ(ids.size(), 20u);
  EXPECT_EQ(given, 20u);
  EXPECT_TRUE(items_of(get("/v1/dead/groups/0123456789abcdef").body, "ids").empty());
}

TEST_F(DeadGroups, AreReplayedAndDeletedAsOne) {
  for (int i = 0; i < 5; ++i) die("pack", "shelf " + std::to_string(i) + " is empty");
  die("pack", "no such street");
  const auto groups = items_of(get("/v1/dead/groups").body, "groups");
  ASSERT_EQ(groups.size(), 2u);
  const std::string shelf = field_of(groups[0], "id");
  const Response counted = post("/v1/dead/replay", R"({"like":")" + shelf + R"(","dry_run":true})");
  EXPECT_EQ(field_of(counted.body, "matched"), "5") << counted.body;
  const Response some = post("/v1/dead/delete", R"({"like":")" + shelf + R"(","limit":2})");
  EXPECT_EQ(field_of(some.body, "succeeded"), "2") << some.body;
  // By a job that is in it.
  const Response replayed = post("/v1/dead/replay", R"({"like":")" + field_of(items_of(get("/v1/dead/groups").body, "groups")[0], "example") + R"("})");
  EXPECT_EQ(field_of(replayed.body, "succeeded"), "3") << replayed.body;
  EXPECT_EQ(items_of(get("/v1/dead/groups").body, "groups").size(), 1u);
}

TEST_F(DeadGroups, ThatAreNoneAreRefused) {
  expect_problem(post("/v1/dead/replay", R"({"like":"shelves"})"), 422, "invalid_argument", "like");
  expect_problem(post("/v1/dead/replay", R"({"like":"0123456789abcdef","ids":[]})"), 422, "conflicting_fields", "like");
  expect_problem(post("/v1/dead/replay", R"({"like":"018f3c1e-7d5a-7000-8000-000000000001"})"), 404, "not_found");
  const std::string alive = enqueue(R"({"kind":"a","delay":"1h"})");
  expect_problem(post("/v1/dead/delete", R"({"like":")" + alive + R"("})"), 409, "wrong_state", "not dead");
}

}  // namespace
}  // namespace bide::server
