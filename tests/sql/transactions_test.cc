// Jobs in somebody's own transactions: there with the commit, not there without it, and done exactly once, whoever is killed.

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bide/client.h"
#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "sql/own_connection.h"
#include "sql/sql_fixture.h"
#include "support/child_process.h"
#include "support/seeded_random.h"

namespace bide::sql_test {
namespace {

constexpr int kAccounts = 10;

int transfers() {
  const char* const text = std::getenv("BIDE_SQL_TRANSFERS");
  return text != nullptr ? std::atoi(text) : 300;
}

class SqlTransactions : public SqlTest {
 protected:
  std::unique_ptr<OwnConnection> own() { return connect(is_postgres(), "127.0.0.1", std::to_string(server().port())); }
  std::string url() { return server().url("client_timeout=500ms"); }
  // With the name of the database, which the server's own command wants on MariaDB.
  std::string table(const std::string& name) const { return is_postgres() ? name : "bide." + name; }
  std::string jobs() const { return is_postgres() ? "bide.jobs" : "bide.bide_jobs"; }
  long count(const std::string& statement) { return std::stol(server().ask(statement)); }
};

Job transfer_job(int from, int to, int amount) {
  Job job;
  job.kind = "transfer";
  job.body = std::to_string(from) + " " + std::to_string(to) + " " + std::to_string(amount);
  return job;
}

TEST_P(SqlTransactions, AJobIsThereIfAndOnlyIfTheTransactionCommits) {
  auto opened = brokers::open_broker(url());
  ASSERT_TRUE(opened) << opened.error().message;
  const auto connection = own();
  connection->run("BEGIN");
  const auto dropped = connection->enqueue(transfer_job(1, 2, 3));
  ASSERT_TRUE(dropped) << dropped.error().message;
  connection->run("ROLLBACK");
  connection->run("BEGIN");
  Job job = transfer_job(1, 2, 3);
  job.unique_key = "once";
  const auto kept = connection->enqueue(job);
  ASSERT_TRUE(kept) << kept.error().message;
  const auto refused = connection->enqueue(job);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(count("SELECT count(*) FROM " + jobs()), 0) << "before the commit";
  connection->run("COMMIT");
  EXPECT_EQ(count("SELECT count(*) FROM " + jobs()), 1);
  const auto found = wait<JobInfo>([&](auto done) { opened->inspector->find(kept->id, std::move(done)); });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->job.body, "1 2 3");
  const auto audit = wait<AuditReport>([&](auto done) { opened->inspector->audit(std::move(done)); });
  ASSERT_TRUE(audit);
  EXPECT_TRUE(audit->ok());
  EXPECT_EQ(audit->accepted, 1u);
}

TEST_P(SqlTransactions, AnyLanguageEnqueuesByAFunction) {
  if (!is_postgres()) GTEST_SKIP() << "PostgreSQL only";
  auto opened = brokers::open_broker(url());
  ASSERT_TRUE(opened) << opened.error().message;
  const std::string id = server().ask("SELECT bide.enqueue('resize', '{\"width\": 640}', queue => 'images', priority => 5)");
  const auto found = wait<JobInfo>([&](auto done) { opened->inspector->find(*JobId::parse(id), std::move(done)); });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->job.kind, "resize");
  EXPECT_EQ(found->job.queue, "images");
  EXPECT_EQ(found->job.body, "{\"width\": 640}");
  EXPECT_EQ(found->job.content_type, "application/json");
  EXPECT_EQ(found->job.priority, 5);
  EXPECT_EQ(found->job.retry, RetryPolicy());
  EXPECT_EQ(found->state, JobState::kReady);
  EXPECT_THROW(server().ask("SELECT bide.enqueue('not a kind')"), std::runtime_error);
  const auto audit = wait<AuditReport>([&](auto done) { opened->inspector->audit(std::move(done)); });
  ASSERT_TRUE(audit);
  EXPECT_TRUE(audit->ok());
}

// The books balance though the workers are killed all the time: money, receipts and jobs agree.
TEST_P(SqlTransactions, TransfersAreDoneExactlyOnceThoughWorkersAreKilled) {
  const auto connection = own();
  connection->run("CREATE TABLE accounts (id integer PRIMARY KEY, balance bigint NOT NULL)");
  connection->run("CREATE TABLE receipts (job char(36) PRIMARY KEY)");
  std::map<int, long> expected;
  for (int account = 0; account < kAccounts; ++account) {
    connection->run("INSERT INTO accounts VALUES (" + std::to_string(account) + ", 1000)");
    expected[account] = 1000;
  }
  auto client = Client::open(url());
  ASSERT_TRUE(client) << client.error().message;
  support::SeededRandom random(11);
  std::map<std::string, std::vector<int>> asked;
  for (int i = 0; i < transfers(); ++i) {
    const int from = static_cast<int>(random.next_below(kAccounts));
    const int to = (from + 1 + static_cast<int>(random.next_below(kAccounts - 1))) % kAccounts;
    const int amount = 1 + static_cast<int>(random.next_below(50));
    connection->run("BEGIN");
    const auto enqueued = connection->enqueue(transfer_job(from, to, amount));
    ASSERT_TRUE(enqueued) << enqueued.error().message;
    connection->run(random.chance(0.1) ? "ROLLBACK" : "COMMIT");
    asked[enqueued->id.to_string()] = {from, to, amount};
  }
  const long all = count("SELECT count(*) FROM " + jobs());
  EXPECT_GT(all, transfers() / 2) << "invalid: too few";
  EXPECT_LT(all, transfers()) << "invalid: nothing was rolled back";

  const auto finished = [&] { return count("SELECT count(*) FROM " + jobs() + " WHERE kind = 'transfer' AND state >= 2"); };
  int killed = 0;
  for (int round = 0; round < 200 && finished() < all; ++round) {
    const pid_t child = support::spawn({.arguments = {BIDE_TRANSFER_CHILD, url(), "127.0.0.1", std::to_string(server().port()),
                                                      is_postgres() ? "postgres" : "mariadb"},
                                        .environment = {"PATH=/usr/bin:/bin"}});
    // When it has done some of them, however fast it is: that hits it at work.
    const long enough = std::min(all, finished() + 1 + static_cast<long>(random.next_below(static_cast<std::uint64_t>(all) / 8)));
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300 + random.next_below(700));
    while (std::chrono::steady_clock::now() < until && finished() < enough) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ++killed;
  }
  EXPECT_EQ(finished(), all);
  EXPECT_GT(killed, 1) << "invalid: one worker was enough";
  const long done = count("SELECT count(*) FROM " + jobs() + " WHERE kind = 'transfer' AND state = 2");
  EXPECT_EQ(count("SELECT count(*) FROM " + table("receipts")), done);
  EXPECT_EQ(count("SELECT count(*) FROM " + jobs() + " WHERE queue = 'counted'"), done);
  EXPECT_EQ(count("SELECT sum(balance) FROM " + table("accounts")), 1000 * kAccounts);
  const std::string receipts = server().ask("SELECT job FROM " + table("receipts"));
  for (std::size_t at = 0; at + 36 <= receipts.size(); at += 37) {
    const std::vector<int>& transfer = asked.at(receipts.substr(at, 36));
    expected[transfer[0]] -= transfer[2];
    expected[transfer[1]] += transfer[2];
  }
  for (const auto& [account, balance] : expected) {
    EXPECT_EQ(count("SELECT balance FROM " + table("accounts") + " WHERE id = " + std::to_string(account)), balance);
  }
  std::printf("%ld transfers, %ld done, %d workers killed\n", all, done, killed);
}

INSTANTIATE_TEST_SUITE_P(Sql, SqlTransactions, every_database(), name_of);

}  // namespace
}  // namespace bide::sql_test
