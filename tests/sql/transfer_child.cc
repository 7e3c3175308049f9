// transfer_child URL HOST PORT DIALECT: a process that runs transfers between accounts, each in one transaction with the job
// that asks for it: takes the money, gives it, writes a receipt, enqueues the job that counts it, and settles. Killed at random
// by transactions_test.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <memory>
#include <string>

#include "bide/client.h"
#include "bide/worker.h"
#include "sql/own_connection.h"

int main(int argc, char** argv) {
  if (argc != 5) return 64;
  auto opened = bide::Client::open(argv[1]);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 1;
  }
  const std::string host = argv[2], port = argv[3];
  const bool postgres = std::string(argv[4]) == "postgres";
  bide::Worker worker(*opened, {.queues = {"default"}, .concurrency = 2});
  worker.handle("transfer", [&](const bide::Job& job, bide::Context& context) -> bide::Outcome {
    thread_local std::unique_ptr<bide::sql_test::OwnConnection> database;
    if (!database) database = bide::sql_test::connect(postgres, host, port);
    // FROM TO AMOUNT
    int from = 0, to = 0, amount = 0;
    if (std::sscanf(job.body.c_str(), "%d %d %d", &from, &to, &amount) != 3) return bide::dead("not a transfer");
    try {
      database->run("BEGIN");
      const auto move = [&](int account, int by) {
        database->run("UPDATE accounts SET balance = balance + (" + std::to_string(by) + ") WHERE id = " + std::to_string(account));
      };
      // In the same order everywhere: no deadlocks.
      move(std::min(from, to), from < to ? -amount : amount);
      move(std::max(from, to), from < to ? amount : -amount);
      database->run("INSERT INTO receipts VALUES ('" + job.id.to_string() + "')");
      bide::Job count;
      count.kind = "count";
      count.queue = "counted";
      count.body = job.id.to_string();
      if (const auto enqueued = database->enqueue(std::move(count)); !enqueued) throw std::runtime_error(enqueued.error().message);
      if (const bide::Status settled = database->settle(context.settlement()); !settled) {
        throw std::runtime_error(settled.error().message);
      }
      database->run("COMMIT");
    } catch (const std::exception&) {
      database.reset();  // Rolls back.
      throw;
    }
    return bide::Done{};
  });
  if (const bide::Status started = worker.start(); !started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  for (;;) pause();
}
