// PgBouncer in transaction mode in front of PostgreSQL: everything works, as long as the URL says so.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <set>

#include "bide/wait.h"
#include "brokers/open_broker.h"
#include "sql/sql_fixture.h"
#include "support/child_process.h"

namespace bide::sql_test {
namespace {

constexpr char kPgBouncer[] = "/usr/sbin/pgbouncer";

class PgBouncer {
 public:
  explicit PgBouncer(const support::SqlServer& server) : port_(support::free_port()) {
    const std::string configuration = server.directory() + "/pgbouncer.ini";
    std::ofstream(configuration) << "[databases]\nbide = host=127.0.0.1 port=" << server.port() << " dbname=bide user=bide\n"
                                 << "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << port_
                                 << "\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\nunix_socket_dir =\n";
    std::vector<std::string> arguments = {kPgBouncer, configuration};
    if (geteuid() == 0) {
      arguments.insert(arguments.begin(), {"/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"});
    }
    process_ = support::spawn({.arguments = std::move(arguments),
                               .environment = {"PATH=/usr/bin:/bin", support::ServerKeeper::mark(server.directory())},
                               .output = server.directory() + "/pgbouncer.log"});
  }
  ~PgBouncer() {
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  std::uint16_t port() const { return port_; }

 private:
  const std::uint16_t port_;
  pid_t process_ = -1;
};

class PgBouncerTest : public SqlTest {};

TEST_P(PgBouncerTest, JobsAreEnqueuedRunAndSettledThroughAPoolOfTransactions) {
  if (access(kPgBouncer, X_OK) != 0) GTEST_SKIP() << "pgbouncer is not installed";
  ASSERT_TRUE(brokers::open_broker(server().url())) << "makes the tables";
  const PgBouncer pool(server());
  const std::string url = server().url_at(pool.port(), "pool_mode=transaction&longest_wait=50ms");
  Result<brokers::OpenedBroker> opened = Error{ErrorCode::kUnavailable, "not opened"};
  ASSERT_TRUE(eventually([&] {
    opened = brokers::open_broker(url);
    return opened.has_value();
  })) << opened.error().message;
  auto worker = brokers::open_broker(url);
  ASSERT_TRUE(worker) << worker.error().message;
  std::mutex mutex;
  std::set<JobId> settled;
  auto subscription = worker->broker->subscribe({}, [&](std::vector<Lease> leases) {
    std::vector<Settlement> settlements;
    for (const Lease& lease : leases) settlements.push_back({.lease = {lease.job.id, lease.token}});
    worker->broker->settle(settlements, [&mutex, &settled, settlements](auto statuses) {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; statuses && i < statuses->size(); ++i) {
        if ((*statuses)[i]) settled.insert(settlements[i].lease.id);
      }
    });
  });
  ASSERT_TRUE(subscription);
  constexpr std::size_t kJobs = 200;
  Job job;
  job.kind = "work";
  for (std::size_t batch = 0; batch < 10; ++batch) {
    const auto results = wait<std::vector<Result<Enqueued>>>(
        [&](auto done) { opened->broker->enqueue(std::vector<Job>(kJobs / 10, job), std::move(done)); });
    ASSERT_TRUE(results) << results.error().message;
  }
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return settled.size() == kJobs;
  }));
  const auto audit = wait<AuditReport>([&](auto done) { opened->inspector->audit(std::move(done)); });
  ASSERT_TRUE(audit) << audit.error().message;
  EXPECT_TRUE(audit->ok());
  EXPECT_EQ(audit->done, kJobs);
  subscription->reset();
  *worker = {};
}

INSTANTIATE_TEST_SUITE_P(Sql, PgBouncerTest, testing::Values(database<support::PostgresServer>("postgres")), name_of);

}  // namespace
}  // namespace bide::sql_test
