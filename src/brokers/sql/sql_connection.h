// SqlConnection: one connection to a server of either dialect. Statements are files (postgres/, mysql/), named alike in
// both, with the same parameters and columns; a statement that is given several rows of parameters does the same for each.
//
//   connection.begin();
//   connection.add("lock", {ids});           only noted
//   auto rows = connection.run();            sent together; one Rows for each statement that was added
//   connection.add_each("done", changes);
//   connection.commit();
//
// One thread at a time, except interrupt().

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/sql/sql_settings.h"
#include "brokers/sql/sql_value.h"

struct pg_conn;
struct st_mysql;

namespace bide::brokers::sql {

// What a failed statement means for whoever sent it.
enum class Failure : std::uint8_t {
  kNone,
  kConflict,   // Another transaction was in the way: a deadlock, a lock that was waited for too long. Try it again.
  kDuplicate,  // A key is there already.
  kLost,       // The connection is gone.
  kInterrupted,  // Somebody ended the statement.
  kRefused,    // Anything else.
};

class SqlConnection {
 public:
  virtual ~SqlConnection() = default;

  using List = std::vector<Value>;

  virtual void begin() = 0;
  virtual void add(std::string_view statement, Values values) = 0;
  // The first parameter is a list, for "any of these".
  virtual void add_list(std::string_view statement, List list, Values others = {}) = 0;
  virtual void add_each(std::string_view statement, std::vector<Values> rows) = 0;
  // Tells whoever listens, when the transaction is committed. Of a time or a delay is told how long it still lasts.
  struct Notice {
    std::string before = {};
    std::optional<std::int64_t> due_ms = {};
    std::optional<std::int64_t> delay_ms = {};
    std::string behind = {};
    friend auto operator<=>(const Notice&, const Notice&) = default;
  };
  virtual void add_notice(Notice notice) = 0;

  // kUnavailable: the connection is gone, and with it the transaction: nothing was done.
  virtual Result<std::vector<Rows>> run() = 0;
  // The same, and commits. kUnconfirmed: the connection is gone, and nobody knows.
  virtual Result<std::vector<Rows>> commit() = 0;
  virtual void rollback() = 0;
  virtual Failure last_failure() const = 0;

  // Statements of a script, one after another: for the schema. Together or not at all where the server can.
  virtual Status execute(const std::string& script) = 0;
  // Runs `change` while no other connection does so under this name.
  virtual Status execute_locked(const std::string& name, const std::function<Status()>& change) = 0;

  virtual Status listen() = 0;
  // For those who were told of something by a transaction whose end nobody here sees.
  virtual void wake_listeners() {}
  // `missed`: something may have been told and was not heard.
  struct Heard {
    std::vector<std::string> notices = {};
    bool missed = false;
  };
  virtual Result<Heard> wait(Milliseconds at_most) = 0;

  virtual bool is_lost() const = 0;
  virtual void interrupt() = 0;
  // Somebody else's: begin(), commit() and rollback() leave the transaction to its owner, and nothing is tried again.
  virtual bool is_borrowed() const { return false; }
  virtual std::int64_t number() const = 0;  // Of the connection, at the server.
  // There is no statement `pick` for a queue, only pick_priority for each priority that next_priority finds.
  virtual bool picks_by_priority() const { return false; }
};

// kUnavailable, kPermissionDenied, kUnsupported: in the server's own words, without the password.
Result<std::unique_ptr<SqlConnection>> connect_postgres(const SqlSettings& settings);
Result<std::unique_ptr<SqlConnection>> connect_mysql(const SqlSettings& settings);

// Statements in the transaction of a connection that belongs to somebody else. Only the schema of the settings counts.
std::unique_ptr<SqlConnection> borrow_postgres(pg_conn* connection, const SqlSettings& settings);
std::unique_ptr<SqlConnection> borrow_mysql(st_mysql* connection, const SqlSettings& settings);

}  // namespace bide::brokers::sql
