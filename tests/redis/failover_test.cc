// Replicas: confirmations that wait for them, a master that becomes one, sentinels that name another master.

#include "redis/redis_fixture.h"
#include "support/redis_server.h"

namespace bide::redis_test {
namespace {

using support::RedisServer;

class RedisFailover : public RedisTest {
 protected:
  static std::string replica_of(const RedisServer& server) { return "replicaof 127.0.0.1 " + std::to_string(server.port()); }
  static bool is_in_step(RedisServer& replica) {
    return replica.ask({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
  }
};

TEST_F(RedisFailover, ConfirmationWaitsForTheReplicasThatTheUrlAsksFor) {
  RedisServer master;
  const auto opened = open(master.url() + "?replicas=1&patience=500ms");
  const Result<Enqueued> alone = enqueue(*opened.broker, make_job());
  ASSERT_FALSE(alone) << "confirmed though there is no replica";
  EXPECT_EQ(alone.error().code, ErrorCode::kUnconfirmed);
  EXPECT_NE(alone.error().message.find("0 of 1 replicas"), std::string::npos) << alone.error().message;

  RedisServer replica({replica_of(master)});
  ASSERT_TRUE(eventually([&] { return is_in_step(replica); }));
  EXPECT_TRUE(eventually([&] { return enqueue(*opened.broker, make_job()).has_value(); }));
}

TEST_F(RedisFailover, MasterThatBecomesAReplicaIsLeftUntilItIsAMasterAgain) {
  RedisServer server, other;
  const auto opened = open(server.url() + "?patience=1s");
  ASSERT_TRUE(succeeded(enqueue(*opened.broker, make_job())));
  // Of a port where nobody is: it keeps its data, and takes no writes.
  server.ask({"REPLICAOF", "127.0.0.1", "1"});
  const Result<Enqueued> refused = enqueue(*opened.broker, make_job());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable) << refused.error().message;
  server.ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(eventually([&] { return enqueue(*opened.broker, make_job()).has_value(); }));
  EXPECT_TRUE(take(*opened.broker).has_value());
}

TEST_F(RedisFailover, SentinelsLeadToTheNewMaster) {
  RedisServer first;
  RedisServer second({replica_of(first)});
  ASSERT_TRUE(eventually([&] { return is_in_step(second); }));
  RedisServer sentinel({"sentinel monitor shop 127.0.0.1 " + std::to_string(first.port()) + " 1",
                        "sentinel down-after-milliseconds shop 500", "sentinel failover-timeout shop 3000"},
                       RedisServer::Kind::kSentinel);
  ASSERT_TRUE(eventually([&] { return sentinel.ask({"SENTINEL", "REPLICAS", "shop"}).find(std::to_string(second.port())) != std::string::npos; }));
  const auto opened = open("redis+sentinel://127.0.0.1:1,127.0.0.1:" + std::to_string(sentinel.port()) + "/shop?patience=2s");
  ASSERT_TRUE(succeeded(enqueue(*opened.broker, make_job("from before"))));
  ASSERT_TRUE(eventually([&] { return second.ask({"HGET", "{bide}:n", "accepted"}) == "1"; }));
  first.kill();
  ASSERT_TRUE(eventually([&] { return sentinel.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop"}).find(std::to_string(second.port())) != std::string::npos; }));
  const auto lease = take(*opened.broker, std::chrono::seconds(60));
  ASSERT_TRUE(lease.has_value()) << "the job did not come from the new master";
  EXPECT_EQ(lease->job.body, "from before");
  EXPECT_TRUE(succeeded(settle(*opened.broker, *lease)));
  EXPECT_EQ(second.ask({"HGET", "{bide}:n", "done"}), "1");
}

TEST_F(RedisFailover, SentinelsThatKnowNoSuchMasterAreNamed) {
  RedisServer sentinel({}, RedisServer::Kind::kSentinel);
  const auto refused = brokers::open_broker("redis+sentinel://127.0.0.1:" + std::to_string(sentinel.port()) + "/shop");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message.find("knows no such master"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace bide::redis_test
