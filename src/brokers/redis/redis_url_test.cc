#include "brokers/redis/redis_url.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::brokers::redis {
namespace {

Settings parsed(std::string_view rest, bool sentinel = false) {
  Result<Settings> settings = parse_redis_url(rest, sentinel);
  EXPECT_TRUE(settings) << rest << ": " << (settings ? "" : settings.error().message);
  return settings ? *settings : Settings{};
}

std::string refusal(std::string_view rest, bool sentinel = false) {
  const Result<Settings> settings = parse_redis_url(rest, sentinel);
  EXPECT_FALSE(settings) << rest;
  if (settings) return "";
  EXPECT_EQ(settings.error().code, ErrorCode::kInvalidArgument);
  return settings.error().message;
}

TEST(RedisUrl, NamesHostPortDatabaseAndCredentials) {
  const Settings settings = parsed("//shop:p%40ss%3Aword@redis.example:6380/3");
  EXPECT_EQ(settings.hosts, (std::vector<Host>{{"redis.example", 6380}}));
  EXPECT_EQ(settings.login.user, "shop");
  EXPECT_EQ(settings.login.password, "p@ss:word");
  EXPECT_EQ(settings.login.database, 3);
  EXPECT_EQ(parsed("//:secret@h").login.user, "");
  EXPECT_EQ(parsed("//[::1]:7000").hosts, (std::vector<Host>{{"::1", 7000}}));
}

TEST(RedisUrl, LeavesTheUsualValuesWhereNothingIsSaid) {
  const Settings settings = parsed("//localhost");
  EXPECT_EQ(settings.hosts, (std::vector<Host>{{"localhost", 6379}}));
  EXPECT_EQ(settings.login.database, 0);
  EXPECT_EQ(settings.prefix, "bide");
  EXPECT_EQ(settings.replicas, 0u);
  EXPECT_EQ(place_of(settings), "localhost:6379, database 0, prefix bide");
  EXPECT_EQ(parsed("//localhost/").login.database, 0);
}

TEST(RedisUrl, NamesTheSentinelsAndTheirMaster) {
  const Settings settings = parsed("//:secret@a,b:1,[::1]:2/mymaster/4?sentinel_password=s%26", true);
  EXPECT_EQ(settings.hosts, (std::vector<Host>{{"a", 26379}, {"b", 1}, {"::1", 2}}));
  EXPECT_EQ(settings.master, "mymaster");
  EXPECT_EQ(settings.login.database, 4);
  EXPECT_EQ(settings.sentinel_password, "s&");
  EXPECT_EQ(place_of(settings), "master mymaster of a:26379, b:1, ::1:2, database 4, prefix bide");
  EXPECT_NE(refusal("//a,b", true).find("names no master"), std::string::npos);
  EXPECT_NE(refusal("//a,b/0").find("redis+sentinel"), std::string::npos);
}

TEST(RedisUrl, UnderstandsItsOptions) {
  const Settings settings = parsed(
      "//h?prefix=shop&patience=2s&result_retention=10m&done_limit=7&client_timeout=2s&dead_retention=30d&replicas=2"
      "&fsync=yes");
  EXPECT_EQ(settings.prefix, "shop");
  EXPECT_EQ(settings.patience, Milliseconds(2000));
  EXPECT_EQ(settings.result_retention, std::chrono::minutes(10));
  EXPECT_EQ(settings.done_limit, 7u);
  EXPECT_EQ(settings.client_timeout, Milliseconds(2000));
  EXPECT_EQ(settings.dead_retention, std::chrono::hours(24 * 30));
  EXPECT_EQ(settings.replicas, 2u);
  EXPECT_TRUE(settings.fsync);
}

TEST(RedisUrl, MistakesAreNamedWithWhatIsAllowed) {
  EXPECT_NE(refusal("//h?prefx=a").find("did you mean 'prefix'?"), std::string::npos);
  EXPECT_NE(refusal("h").find("//"), std::string::npos);
  EXPECT_NE(refusal("//").find("names no host"), std::string::npos);
  EXPECT_NE(refusal("//h:").find("colon without a port"), std::string::npos);
  EXPECT_NE(refusal("//h:99999").find("1 to 65535"), std::string::npos);
  EXPECT_NE(refusal("//h/x").find("database"), std::string::npos);
  EXPECT_NE(refusal("//user@h").find(":password@"), std::string::npos);
  EXPECT_NE(refusal("//h?prefix=a%20b").find("prefix: "), std::string::npos);
  EXPECT_NE(refusal("//h?prefix=a%7Bb").find("prefix: "), std::string::npos);
  EXPECT_NE(refusal("//h?replicas=-1").find("replicas: "), std::string::npos);
  EXPECT_NE(refusal("//h?fsync=maybe").find("yes or no"), std::string::npos);
}

TEST(RedisUrl, PasswordIsNeverRepeated) {
  for (const char* url : {"//user:secret@:6379/", "//user:secret@h:0", "//user:secret/with@h:1/x", "//user:secr%zzet@h",
                          "//user:secret@h?nonsense=1", "//user:se/secret@h:secret", "//secret@h"}) {
    EXPECT_EQ(refusal(url).find("secret"), std::string::npos) << url;
  }
  EXPECT_EQ(place_of(parsed("//user:secret@h")).find("secret"), std::string::npos);
}

}  // namespace
}  // namespace bide::brokers::redis
