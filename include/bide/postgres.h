// Jobs in your own PostgreSQL transaction: a job exists if and only if your change commits, and a handler's writes and the
// outcome of its job commit together: exactly once.
//
//   PQexec(connection, "BEGIN");
//   PQexec(connection, "UPDATE accounts SET ...");
//   bide::postgres::enqueue(connection, job);
//   PQexec(connection, "COMMIT");                     // Workers are told by this, too.
//
//   worker.handle("transfer", [&](const bide::Job& job, bide::Context& context) {
//     PQexec(connection, "BEGIN");
//     ...                                             // Your writes.
//     const bide::Status settled = bide::postgres::settle(connection, context.settlement());
//     PQexec(connection, settled ? "COMMIT" : "ROLLBACK");
//     if (!settled) throw std::runtime_error(settled.error().message);
//   });
//
// The database is the one of the broker (postgres://...). The connection is in a transaction, not in pipeline mode, and
// used by one thread. After an error PostgreSQL has ended the transaction: roll it back. From other languages:
// SELECT bide.enqueue('kind', 'body').

#pragma once

#include <string>

#include "bide/broker.h"
#include "bide/job.h"
#include "bide/lease.h"
#include "bide/result.h"

struct pg_conn;  // PGconn of libpq.

namespace bide::postgres {

struct Options {
  std::string schema = "bide";  // As in the broker's URL.
};

// As Broker::enqueue, for one job.
Result<Enqueued> enqueue(pg_conn* connection, Job job, const Options& options = {});

// As Broker::settle. The handler returns the same kind of outcome afterwards, if the transaction has committed.
//
// kLeaseLost, kNotFound: as with settle: roll back, another attempt may have done it.
Status settle(pg_conn* connection, Settlement settlement, const Options& options = {});

}  // namespace bide::postgres
