#include "brokers/redis/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace bide::brokers::redis {
namespace {

const std::string kGoodInfo =
    "# Persistence\r\naof_enabled:1\r\naof_last_write_status:ok\r\n# Memory\r\nused_memory:100\r\nmaxmemory:1000\r\n"
    "maxmemory_policy:noeviction\r\n# Replication\r\nconnected_slaves:1\r\ncluster_enabled:0\r\n";

// The findings that somebody should look at.
std::string trouble(const ServerFacts& facts, const Settings& settings = {}) {
  std::string text;
  for (const Finding& finding : judge(facts, settings)) {
    if (finding.ok) continue;
    text += finding.what + "\n";
    EXPECT_NE(finding.advice, "") << finding.what;
  }
  return text;
}

ServerFacts facts(std::string info = kGoodInfo, std::string appendfsync = "always") {
  ServerFacts made;
  made.info = std::move(info);
  made.appendfsync = std::move(appendfsync);
  return made;
}

std::string with(const std::string& line, const std::string& instead) {
  std::string info = kGoodInfo;
  const std::size_t at = info.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return info.replace(at, line.size(), instead);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RedisDoctor, HasNothingToSayOfAServerThatIsSetUpForJobs) { EXPECT_EQ(trouble(facts()), ""); }

TEST(RedisDoctor, SaysWhatASettingOfDurabilityCanLose) {
  EXPECT_TRUE(has(trouble(facts(with("aof_enabled:1", "aof_enabled:0"))), "no append-only file"));
  EXPECT_TRUE(has(trouble(facts(kGoodInfo, "everysec")), "last second"));
  EXPECT_TRUE(has(trouble(facts(kGoodInfo, "no")), "half minute"));
  Settings settings;
  settings.fsync = true;
  EXPECT_EQ(trouble(facts(kGoodInfo, "everysec"), settings), "");
  ServerFacts unknown = facts();
  unknown.appendfsync.reset();
  EXPECT_TRUE(has(trouble(unknown), "CONFIG is not allowed"));
  EXPECT_TRUE(has(trouble(facts(with("write_status:ok", "write_status:err"))), "aof_last_write_status is err"));
}

TEST(RedisDoctor, SaysWhatBecomesOfFullMemory) {
  EXPECT_TRUE(has(trouble(facts(with("noeviction", "allkeys-lru"))), "may drop jobs"));
  EXPECT_EQ(trouble(facts(with("noeviction", "volatile-lru"))), "");
  EXPECT_TRUE(has(trouble(facts(with("maxmemory:1000", "maxmemory:0"))), "no limit"));
  EXPECT_TRUE(has(trouble(facts(with("used_memory:100", "used_memory:950"))), "95% full"));
}

TEST(RedisDoctor, SaysWhatIsMissingAround) {
  Settings settings;
  settings.replicas = 2;
  EXPECT_TRUE(has(trouble(facts(), settings), "asks for 2 replicas"));
  EXPECT_TRUE(has(trouble(facts(with("cluster_enabled:0", "cluster_enabled:1"))), "node of a cluster"));
  ServerFacts late = facts();
  late.clock_ahead_ms = -60'000;
  EXPECT_TRUE(has(trouble(late), "behind ours"));
}

}  // namespace
}  // namespace bide::brokers::redis
