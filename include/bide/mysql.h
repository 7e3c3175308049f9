// Jobs in your own MariaDB or MySQL transaction: a job exists if and only if your change commits, and a handler's writes and the
// outcome of its job commit together: exactly once.
//
//   mysql_query(connection, "BEGIN");
//   mysql_query(connection, "UPDATE accounts SET ...");
//   bide::mysql::enqueue(connection, job);
//   mysql_query(connection, "COMMIT");
//   bide::mysql::wake(connection);                      // Otherwise workers find it within a second.
//
//   worker.handle("transfer", [&](const bide::Job& job, bide::Context& context) {
//     mysql_query(connection, "BEGIN");
//     ...                                             // Your writes.
//     const bide::Status settled = bide::mysql::settle(connection, context.settlement());
//     mysql_query(connection, settled ? "COMMIT" : "ROLLBACK");
//     if (!settled) throw std::runtime_error(settled.error().message);
//   });
//
// The database is the one of the broker (mysql://...). The connection is in a transaction, of isolation level READ COMMITTED,
// and used by one thread. After an error roll it back.

#pragma once

#include <string>

#include "bide/broker.h"
#include "bide/job.h"
#include "bide/lease.h"
#include "bide/result.h"

struct st_mysql;  // MYSQL of libmariadb.

namespace bide::mysql {

struct Options {
  std::string prefix = "bide";  // As in the broker's URL.
};

// As Broker::enqueue, for one job.
Result<Enqueued> enqueue(st_mysql* connection, Job job, const Options& options = {});

// As Broker::settle. The handler returns the same kind of outcome afterwards, if the transaction has committed.
//
// kLeaseLost, kNotFound: as with settle: roll back, another attempt may have done it.
Status settle(st_mysql* connection, Settlement settlement, const Options& options = {});

// After the commit: whoever waits for jobs looks at once.
void wake(st_mysql* connection, const Options& options = {});

}  // namespace bide::mysql
