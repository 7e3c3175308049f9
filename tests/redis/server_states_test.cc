// What a Redis server can be in: without our scripts, without memory, still loading, a replica, set up so that it drops
// jobs. Each is told in plain words, and what can go on goes on.

#include "redis/redis_fixture.h"
#include "support/redis_server.h"

namespace bide::redis_test {
namespace {

using support::RedisServer;

class RedisServerStates : public RedisTest {};

TEST_F(RedisServerStates, ScriptsThatTheServerForgotAreSentAgain) {
  RedisServer server;
  const auto opened = open(server.url());
  ASSERT_TRUE(succeeded(enqueue(*opened.broker, make_job("before"))));
  server.ask({"SCRIPT", "FLUSH"});
  ASSERT_TRUE(succeeded(enqueue(*opened.broker, make_job("after"))));
  for (const char* body : {"before", "after"}) {
    server.ask({"SCRIPT", "FLUSH"});
    const auto lease = take(*opened.broker);
    ASSERT_TRUE(lease.has_value());
    EXPECT_EQ(lease->job.body, body);
    server.ask({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(succeeded(settle(*opened.broker, *lease)));
  }
  EXPECT_TRUE(audit(opened).ok());
}

TEST_F(RedisServerStates, AnEnqueueAfterTheServerClosedAnIdleConnectionIsNotInDoubt) {
  RedisServer server;
  const auto opened = open(server.url());
  for (int round = 0; round < 20; ++round) {
    server.ask({"CLIENT", "KILL", "TYPE", "normal"});
    const auto enqueued = enqueue(*opened.broker, make_job());
    ASSERT_TRUE(enqueued) << enqueued.error().message;
  }
  EXPECT_EQ(audit(opened).accepted, 20u);
}

TEST_F(RedisServerStates, FullMemoryRefusesNewJobsAndLetsTheOthersEnd) {
  RedisServer server;
  const auto opened = open(server.url());
  constexpr int kWaiting = 20;
  for (int i = 0; i < kWaiting; ++i) ASSERT_TRUE(succeeded(enqueue(*opened.broker, make_job(std::string(1000, 'x')))));
  server.ask({"CONFIG", "SET", "maxmemory", "1mb"});  // Less than it has.
  const Result<Enqueued> refused = enqueue(*opened.broker, make_job());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_NE(refused.error().message.find("OOM"), std::string::npos) << refused.error().message;

  const std::vector<Outcome> outcomes = {Done{.result = "result", .content_type = ""}, RetryAt{.after = Milliseconds(0), .fault = Fault::kFailed, .error = "again", .body = {}},
                                         Returned{.after = Milliseconds(0), .note = "not now"}, Dead{.reason = DeadReason::kRejected, .fault = Fault::kFailed, .error = "no"}};
  std::uint64_t done = 0;
  for (int i = 0; i < kWaiting; ++i) {
    const auto lease = take(*opened.broker);
    ASSERT_TRUE(lease.has_value()) << "no leases while memory is full";
    const Outcome& outcome = outcomes[static_cast<std::size_t>(i) % outcomes.size()];
    EXPECT_TRUE(succeeded(settle(*opened.broker, *lease, outcome)));
    done += std::holds_alternative<Done>(outcome) ? 1 : 0;
  }
  EXPECT_EQ(audit(opened).done, done);
  EXPECT_TRUE(audit(opened).ok());
  server.ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(succeeded(enqueue(*opened.broker, make_job())));
}

TEST_F(RedisServerStates, PolicyThatDropsJobsIsRefused) {
  RedisServer server;
  server.ask({"CONFIG", "SET", "maxmemory", "100mb"});
  for (const char* policy : {"allkeys-lru", "allkeys-lfu", "allkeys-random"}) {
    server.ask({"CONFIG", "SET", "maxmemory-policy", policy});
    const auto refused = brokers::open_broker(server.url());
    ASSERT_FALSE(refused) << policy;
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(refused.error().message.find("noeviction"), std::string::npos) << refused.error().message;
  }
  // These drop keys with a time to live only, and bide's have none.
  for (const char* policy : {"noeviction", "volatile-lru", "volatile-ttl"}) {
    server.ask({"CONFIG", "SET", "maxmemory-policy", policy});
    EXPECT_TRUE(brokers::open_broker(server.url())) << policy;
  }
}

TEST_F(RedisServerStates, NoKeyOfOursHasATimeToLive) {
  RedisServer server;
  const auto opened = open(server.url());
  Job unique = make_job();
  unique.unique_key = "key";
  unique.priority = 5;
  ASSERT_TRUE(succeeded(enqueue(*opened.broker, unique)));
  ASSERT_TRUE(succeeded(enqueue(*opened.broker, make_job())));
  const auto lease = take(*opened.broker);
  ASSERT_TRUE(lease.has_value());
  ASSERT_TRUE(succeeded(settle(*opened.broker, *lease, Done{.result = "kept", .content_type = ""})));
  const std::string counted = server.ask({"INFO", "keyspace"});
  EXPECT_NE(counted.find("expires=0"), std::string::npos) << counted;
}

TEST_F(RedisServerStates, KeysHaveOneHashTag) {
  RedisServer server;
  const auto opened = open(server.url() + "?prefix=shop");
  ASSERT_TRUE(succeeded(enqueue(*opened.broker, make_job())));
  ASSERT_TRUE(take(*opened.broker).has_value());
  EXPECT_EQ(server.ask({"EVAL", "for _, k in ipairs(redis.call('KEYS', '*')) do if string.sub(k, 1, 7) ~= '{shop}:' then return k end end return 'all'", "0"}), "all");
}

TEST_F(RedisServerStates, ServerThatStillLoadsIsWaitedFor) {
  // It listens between 1024 commands of its file, each of which takes 0.4 ms.
  RedisServer server({"key-load-delay 400"});
  const auto opened = open(server.url() + "?patience=2s");
  constexpr int kJobs = 3000;
  const std::vector<Job> jobs(kJobs, make_job());
  ASSERT_TRUE(succeeded(wait<std::vector<Result<Enqueued>>>([&](auto done) { opened.broker->enqueue(jobs, std::move(done)); })));
  server.kill();
  server.start_without_waiting();
  bool said_so = false;
  EXPECT_TRUE(eventually([&] {
    const Result<Enqueued> result = enqueue(*opened.broker, make_job());
    if (result) return true;
    said_so = said_so || result.error().message.find("oading") != std::string::npos;
    EXPECT_TRUE(result.error().code == ErrorCode::kUnavailable || result.error().code == ErrorCode::kUnconfirmed) << result.error().message;
    return false;
  }));
  EXPECT_TRUE(said_so) << "invalid: the server was not seen loading";
  EXPECT_GE(audit(opened).accepted, kJobs + 1u);
  EXPECT_TRUE(audit(opened).ok());
}

TEST_F(RedisServerStates, PasswordIsNeededAndNeverRepeated) {
  RedisServer server;
  server.ask({"CONFIG", "SET", "requirepass", "the-secret"});
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  for (const std::string& url : {"redis://" + host, "redis://:wrong-secret@" + host}) {
    const auto refused = brokers::open_broker(url);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied) << refused.error().message;
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(brokers::open_broker("redis://:the-secret@" + host));
}

TEST_F(RedisServerStates, DataOfANewerVersionIsLeftAlone) {
  RedisServer server;
  server.ask({"SET", "{bide}:format", "3"});
  const auto refused = brokers::open_broker(server.url());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNewerVersion);
}

TEST_F(RedisServerStates, DatabasesAndPrefixesAreApart) {
  RedisServer server;
  const auto first = open(server.url() + "/1"), second = open(server.url() + "/2"), third = open(server.url() + "/1?prefix=other");
  ASSERT_TRUE(succeeded(enqueue(*first.broker, make_job())));
  EXPECT_EQ(audit(first).accepted, 1u);
  EXPECT_EQ(audit(second).accepted, 0u);
  EXPECT_EQ(audit(third).accepted, 0u);
}

TEST_F(RedisServerStates, DoneJobsAreForgottenBeyondTheirLimit) {
  RedisServer server;
  const auto opened = open(server.url() + "?done_limit=5");
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(succeeded(enqueue(*opened.broker, make_job())));
    const auto lease = take(*opened.broker);
    ASSERT_TRUE(lease.has_value());
    ASSERT_TRUE(succeeded(settle(*opened.broker, *lease)));
  }
  const AuditReport report = audit(opened);
  EXPECT_EQ(report.done, 20u);
  EXPECT_EQ(report.details.at("done_remembered"), 5u);
  EXPECT_TRUE(report.ok());
}

TEST_F(RedisServerStates, FsyncIsRefusedWhereTheServerCannotTell) {
  RedisServer server;
  const auto opened = brokers::open_broker(server.url() + "?fsync=yes");
  if (opened) {  // 7.2 and later.
    EXPECT_TRUE(succeeded(enqueue(*opened->broker, make_job())));
    return;
  }
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(opened.error().message.find("appendfsync"), std::string::npos) << opened.error().message;
}

TEST_F(RedisServerStates, TlsIsRefusedWithAWayOut) {
  const auto refused = brokers::open_broker("rediss://127.0.0.1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("stunnel"), std::string::npos);
}

}  // namespace
}  // namespace bide::redis_test
