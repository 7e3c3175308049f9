#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/api/api_test_bench.h"
#include "server/api/error_folding.h"

namespace bide::server {
namespace {

TEST(ErrorFolding, LeavesWhatErrorsOfTheSameCauseHaveInCommon) {
  EXPECT_EQ(fold_error("connect to 10.0.0.7:5432 timed out after 3001 ms"), "connect to * timed out after # ms");
  EXPECT_EQ(fold_error("timed out after 3s, or 3001ms"), "timed out after #s, or #ms");
  EXPECT_EQ(fold_error("no user 'kim' (0x7ffe12, 018f3c1e-7d5a-7000-8000-000000000001)"), "no user '*' (*, *)");
  EXPECT_EQ(fold_error("status 404: https://example.com/a/17?b=2."), "status #: *.");
  EXPECT_EQ(fold_error("it isn't there, and doesn't come"), "it isn't there, and doesn't come");
  EXPECT_EQ(fold_error("first line 1\nsecond"), "first line #");
  EXPECT_EQ(fold_error("-1.5 of -"), "# of -");
  EXPECT_EQ(fold_error(""), "");
  EXPECT_LE(fold_error(std::string(10'000, 'x')).size(), 300u);
}

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

}  // namespace
}  // namespace bide::server
