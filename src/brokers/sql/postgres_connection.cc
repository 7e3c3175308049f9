// PostgreSQL by libpq, in pipeline mode: what was added is sent together and costs one round trip.

#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "brokers/sql/sql_connection.h"
#include "brokers/sql/statements.h"
#include "core/encoding.h"
#include "platform/fatal.h"

namespace bide::brokers::sql {
namespace {

constexpr Oid kByteaOid = 17, kInt8Oid = 20, kTextOid = 25, kUuidOid = 2950;

struct PgDeleter {
  bool is_borrowed = false;
  void operator()(PGconn* connection) const {
    if (!is_borrowed) PQfinish(connection);
  }
  void operator()(PGresult* result) const { PQclear(result); }
};
using PgResult = std::unique_ptr<PGresult, PgDeleter>;

std::string one_line(const char* text) {
  std::string line(text == nullptr ? "" : text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

template <class T>
void put_big_endian(std::string& out, T value) {
  for (unsigned shift = sizeof(T) * 8; shift > 0; shift -= 8) out.push_back(static_cast<char>(value >> (shift - 8)));
}

std::int64_t take_big_endian(const char* bytes, int length) {
  std::int64_t value = static_cast<signed char>(bytes[0]);
  for (int i = 1; i < length; ++i) value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 8 | static_cast<std::uint8_t>(bytes[i]));
  return value;
}

Oid oid_of(Value::Type type) {
  switch (type) {
    case Value::Type::kInteger: return kInt8Oid;
    case Value::Type::kBytes: return kByteaOid;
    case Value::Type::kText: return kTextOid;
    case Value::Type::kId: return kUuidOid;
  }
  return kTextOid;
}

// A parameter in PostgreSQL's binary form.
struct Parameter {
  bool is_null = false;
  std::string bytes = {};
};

void append_element(std::string& out, const Value& value) {
  if (value.is_null()) return put_big_endian(out, static_cast<std::uint32_t>(-1));
  if (value.type() == Value::Type::kInteger) {
    put_big_endian(out, std::uint32_t{8});
    return put_big_endian(out, static_cast<std::uint64_t>(value.integer()));
  }
  put_big_endian(out, static_cast<std::uint32_t>(value.bytes().size()));
  out.append(value.bytes());
}

Parameter scalar(const Value& value) {
  Parameter made{.is_null = value.is_null()};
  if (value.type() == Value::Type::kInteger) {
    put_big_endian(made.bytes, static_cast<std::uint64_t>(value.integer()));
  } else {
    made.bytes = value.bytes();
  }
  return made;
}

// An array of one dimension: dimensions, whether there are nulls, the type, then size and lower bound, then the elements.
template <class At>
Parameter array(std::size_t count, Value::Type type, At at) {
  Parameter made;
  bool has_null = false;
  std::size_t bytes = 20;
  for (std::size_t i = 0; i < count; ++i) {
    has_null = has_null || at(i).is_null();
    bytes += 12 + at(i).bytes().size();
  }
  made.bytes.reserve(bytes);
  put_big_endian(made.bytes, std::uint32_t{count > 0 ? 1u : 0u});
  put_big_endian(made.bytes, std::uint32_t{has_null ? 1u : 0u});
  put_big_endian(made.bytes, static_cast<std::uint32_t>(oid_of(type)));
  if (count == 0) return made;
  put_big_endian(made.bytes, static_cast<std::uint32_t>(count));
  put_big_endian(made.bytes, std::uint32_t{1});
  for (std::size_t i = 0; i < count; ++i) append_element(made.bytes, at(i));
  return made;
}

Rows rows_of(const PGresult* result) {
  const int columns = PQnfields(result);
  Rows rows(static_cast<std::size_t>(std::max(columns, 1)));
  for (int row = 0; row < PQntuples(result); ++row) {
    for (int column = 0; column < columns; ++column) {
      Rows::Cell& cell = rows.add();
      if (PQgetisnull(result, row, column) != 0) continue;
      cell.is_null = false;
      const char* const bytes = PQgetvalue(result, row, column);
      const int length = PQgetlength(result, row, column);
      const Oid type = PQftype(result, column);
      if (type == kByteaOid || type == kTextOid || type == kUuidOid) {
        cell.bytes.assign(bytes, static_cast<std::size_t>(length));
      } else if (length > 0) {
        cell.integer = take_big_endian(bytes, length);
      }
    }
  }
  return rows;
}

class PostgresConnection : public SqlConnection {
 public:
  PostgresConnection(PGconn* connection, const SqlSettings& settings, bool is_borrowed = false)
      : connection_(connection, PgDeleter{is_borrowed}),
        is_borrowed_(is_borrowed),
        socket_(PQsocket(connection)),
        channel_(settings.schema),
        prepares_(!settings.is_pooled && !is_borrowed),
        is_pooled_(settings.is_pooled),
        longest_wait_(settings.longest_wait),
        patience_(settings.patience),
        place_(place_of(settings)),
        statements_(statements_of(settings)) {}

  void begin() override {
    if (!is_borrowed_) add_text("BEGIN");
  }

  void add(std::string_view statement, Values values) override {
    std::vector<Parameter> parameters;
    for (const Value& value : values) parameters.push_back(scalar(value));
    waiting_.push_back({std::string(statement), std::move(parameters)});
  }

  void add_list(std::string_view statement, List list, Values others) override {
    std::vector<Parameter> parameters;
    const Value::Type type = list.empty() ? Value::Type::kId : list.front().type();
    parameters.push_back(array(list.size(), type, [&](std::size_t i) -> const Value& { return list[i]; }));
    for (const Value& value : others) parameters.push_back(scalar(value));
    waiting_.push_back({std::string(statement), std::move(parameters)});
  }

  void add_each(std::string_view statement, std::vector<Values> rows) override {
    if (rows.empty()) return;
    std::vector<Parameter> parameters;
    for (std::size_t column = 0; column < rows.front().size(); ++column) {
      parameters.push_back(array(rows.size(), rows.front()[column].type(),
                                 [&](std::size_t row) -> const Value& { return rows[row][column]; }));
    }
    waiting_.push_back({std::string(statement), std::move(parameters)});
  }

  void add_notice(Notice notice) override { notices_.insert(std::move(notice)); }

  Result<std::vector<Rows>> run() override { return is_borrowed_ ? one_by_one() : exchange(false); }

  Result<std::vector<Rows>> commit() override {
    for (const Notice& notice : notices_) {
      add("notify", {Value::text(channel_), Value::text(notice.before), Value::integer(notice.due_ms), Value::integer(notice.delay_ms),
                     Value::text(notice.behind)});
    }
    const std::size_t unwanted = notices_.size() + (is_borrowed_ ? 0 : 1);
    notices_.clear();
    if (!is_borrowed_) add_text("COMMIT");
    auto rows = is_borrowed_ ? one_by_one() : exchange(true);
    if (rows) rows->resize(rows->size() - std::min(unwanted, rows->size()));
    return rows;
  }

  void rollback() override {
    waiting_.clear();
    notices_.clear();
    if (is_borrowed_) failure_ = Failure::kRefused;  // Whose transaction it is decides whether to try again.
    if (is_borrowed_ || is_lost() || PQtransactionStatus(connection_.get()) == PQTRANS_IDLE) return;
    const Failure before = failure_;
    add_text("ROLLBACK");
    (void)exchange(false);
    if (failure_ != Failure::kLost) failure_ = before;
  }

  Failure last_failure() const override { return is_borrowed_ ? Failure::kRefused : failure_; }
  bool is_borrowed() const override { return is_borrowed_; }
  std::int64_t number() const override { return PQbackendPID(connection_.get()); }

  Status execute(const std::string& script) override {
    PQexitPipelineMode(connection_.get());
    const PgResult result(PQexec(connection_.get(), script.c_str()));
    const ExecStatusType status = PQresultStatus(result.get());
    PQenterPipelineMode(connection_.get());
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
    return failed(result.get(), false);
  }

  Status execute_locked(const std::string& name, const std::function<Status()>& change) override {
    const std::string key = "hashtext('" + name + "')";
    if (Status locked = execute("SELECT pg_advisory_lock(" + key + ")"); !locked) return locked;
    Status changed = change();
    (void)execute("SELECT pg_advisory_unlock(" + key + ")");
    return changed;
  }

  Status listen() override {
    if (is_pooled_) return {};
    return execute("LISTEN \"" + channel_ + "\"");
  }

  Result<Heard> wait(Milliseconds at_most) override {
    Heard heard;
    if (is_pooled_) {
      // Nobody can tell us anything: whoever waits looks for itself after this time.
      at_most = std::min(at_most, longest_wait_);
      heard.missed = true;
    }
    if (take_notices(heard)) return heard;
    pollfd ready{socket_, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(at_most.count()));
    if (count > 0 && (PQconsumeInput(connection_.get()) == 0 || is_lost())) return lost(false);
    if (take_notices(heard) || count > 0 || is_pooled_) return heard;
    // Silence for that long may be the end of the connection.
    add_text("SELECT 1");
    if (const auto alive = exchange(false); !alive) return alive.error();
    take_notices(heard);
    return heard;
  }

  bool is_lost() const override {
    return is_interrupted_ || failure_ == Failure::kLost || PQstatus(connection_.get()) != CONNECTION_OK;
  }
  void interrupt() override {
    is_interrupted_ = true;
    shutdown(socket_, SHUT_RDWR);
  }

  Status prepare_session() {
    PQsetNoticeProcessor(connection_.get(), [](void*, const char*) {}, nullptr);
    PQenterPipelineMode(connection_.get());
    if (!is_pooled_) {
      // The tables change faster than the planner's statistics; every one of our statements has its index.
      if (Status set = execute("SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; "
                               "SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan");
          !set) {
        return set;
      }
    }
    return {};
  }

 private:
  struct Waiting {
    std::string statement;  // A name, or with a space in front a text.
    std::vector<Parameter> parameters;
  };

  void add_text(std::string_view text) { waiting_.push_back({" " + std::string(text), {}}); }

  bool take_notices(Heard& heard) {
    while (PGnotify* notice = PQnotifies(connection_.get())) {
      heard.notices.emplace_back(notice->extra);
      PQfreemem(notice);
    }
    return !heard.notices.empty();
  }

  Error lost(bool is_committing) {
    failure_ = Failure::kLost;
    std::string why = one_line(PQerrorMessage(connection_.get()));
    if (why.empty() || is_interrupted_) why = "the connection was closed";
    return {is_committing ? ErrorCode::kUnconfirmed : ErrorCode::kUnavailable, place_ + ": " + why};
  }

  Error failed(const PGresult* result, bool is_committing) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) return lost(is_committing);
    const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const std::string_view code = state == nullptr ? "" : state;
    const std::string text = place_ + ": " + one_line(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)) + " (" + std::string(code) + ")";
    failure_ = code == "40001" || code == "40P01" || code == "55P03" ? Failure::kConflict
               : code == "23505"                                     ? Failure::kDuplicate
                                                                     : Failure::kRefused;
    // The server goes down, or ended the session: what ran is rolled back.
    if (code.starts_with("57P") || code.starts_with("08")) {
      failure_ = Failure::kLost;
      return {is_committing ? ErrorCode::kUnconfirmed : ErrorCode::kUnavailable, text};
    }
    if (code.starts_with("53100")) return {ErrorCode::kDiskFull, text};
    if (code.starts_with("53")) return {ErrorCode::kOverloaded, text};
    if (code.starts_with("42501")) return {ErrorCode::kPermissionDenied, text};
    if (code == "25006") return {ErrorCode::kUnavailable, text};  // Read only: a replica, or a server after a failover.
    return {ErrorCode::kIoError, text};
  }

  bool send(const Waiting& one) {
    PGconn* const connection = connection_.get();
    const bool is_text = one.statement.front() == ' ';
    if (!is_text && prepares_ && !prepared_.contains(one.statement)) {
      const std::string name = one.statement + "." + std::to_string(generation_);
      if (PQsendPrepare(connection, name.c_str(), text_of(one.statement).c_str(), 0, nullptr) == 0) return false;
      prepared_.emplace(one.statement, name);
      expected_.push_back(false);
    }
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats(one.parameters.size(), 1);
    for (const Parameter& parameter : one.parameters) {
      values.push_back(parameter.is_null ? nullptr : parameter.bytes.data());
      lengths.push_back(static_cast<int>(parameter.bytes.size()));
    }
    const int count = static_cast<int>(values.size());
    expected_.push_back(true);
    if (!is_text && prepares_) {
      return PQsendQueryPrepared(connection, prepared_.at(one.statement).c_str(), count, values.data(), lengths.data(), formats.data(), 1) != 0;
    }
    const std::string& text = is_text ? one.statement : text_of(one.statement);
    return PQsendQueryParams(connection, text.c_str(), count, nullptr, values.data(), lengths.data(), formats.data(), 1) != 0;
  }

  const std::string& text_of(const std::string& statement) const {
    const auto found = statements_.find(statement);
    platform::require(found != statements_.end(), "a statement that is asked for is in the file");
    return found->second;
  }

  // The server has ended a session that was idle. What it said about that is read first, then the end.
  bool has_ended() {
    if (is_borrowed_) return false;
    for (int reads = 0; reads < 3; ++reads) {
      pollfd ready{socket_, POLLIN, 0};
      if (poll(&ready, 1, 0) <= 0) return false;
      if (PQconsumeInput(connection_.get()) == 0) return true;
    }
    return PQstatus(connection_.get()) != CONNECTION_OK;
  }

  // False: nothing came for so long that nothing will: a server that stands still, a connection that nobody is behind.
  bool await_answer() {
    while (PQisBusy(connection_.get()) != 0) {
      pollfd ready{socket_, POLLIN, 0};
      if (poll(&ready, 1, static_cast<int>(patience_.count())) <= 0) return false;
      if (PQconsumeInput(connection_.get()) == 0) return false;
    }
    return true;
  }

  // On a connection whose mode is not ours to change.
  Result<std::vector<Rows>> one_by_one() {
    std::vector<Rows> rows;
    for (const Waiting& one : std::exchange(waiting_, {})) {
      std::vector<const char*> values;
      std::vector<int> lengths;
      const std::vector<int> formats(one.parameters.size(), 1);
      for (const Parameter& parameter : one.parameters) {
        values.push_back(parameter.is_null ? nullptr : parameter.bytes.data());
        lengths.push_back(static_cast<int>(parameter.bytes.size()));
      }
      const PgResult result(PQexecParams(connection_.get(), text_of(one.statement).c_str(), static_cast<int>(values.size()), nullptr,
                                         values.data(), lengths.data(), formats.data(), 1));
      const ExecStatusType status = PQresultStatus(result.get());
      if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) return failed(result.get(), false);
      rows.push_back(rows_of(result.get()));
    }
    return rows;
  }

  Result<std::vector<Rows>> exchange(bool is_committing) {
    const std::vector<Waiting> sent = std::exchange(waiting_, {});
    std::vector<Rows> rows;
    failure_ = Failure::kNone;
    if (is_interrupted_) return lost(false);
    if (sent.empty()) return rows;
    // Nothing of this has been sent.
    if (has_ended()) return lost(false);
    expected_.clear();
    const auto prepared_before = prepared_;
    PGconn* const connection = connection_.get();
    for (const Waiting& one : sent) {
      if (!send(one)) return lost(is_committing);
    }
    if (PQpipelineSync(connection) == 0 || PQflush(connection) < 0) return lost(is_committing);
    std::optional<Error> error;
    for (const bool is_wanted : expected_) {
      if (!await_answer()) return lost(is_committing);
      const PgResult result(PQgetResult(connection));
      if (!result) return lost(is_committing);
      const ExecStatusType status = PQresultStatus(result.get());
      if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        if (is_wanted) rows.push_back(rows_of(result.get()));
      } else if (status != PGRES_PIPELINE_ABORTED && !error) {
        error = failed(result.get(), is_committing);
        if (failure_ == Failure::kLost && PQstatus(connection) != CONNECTION_OK) return *error;
      }
      const PgResult end(PQgetResult(connection));  // Null: the end of this one's results.
      if (end) return lost(is_committing);
    }
    if (!await_answer()) return lost(is_committing);
    const PgResult sync(PQgetResult(connection));
    if (PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC) return lost(is_committing);
    if (!error) return rows;
    // Which of the new ones were prepared before the error is not worth finding out: they get other names the next time.
    prepared_ = prepared_before;
    ++generation_;
    return *error;
  }

  const std::unique_ptr<PGconn, PgDeleter> connection_;
  const bool is_borrowed_;
  const int socket_;
  const std::string channel_;
  const bool prepares_;
  const bool is_pooled_;
  const Milliseconds longest_wait_;
  const Milliseconds patience_;
  const std::string place_;
  const std::map<std::string, std::string, std::less<>> statements_;
  std::map<std::string, std::string> prepared_;  // By statement: its name at the server.
  int generation_ = 0;
  std::vector<Waiting> waiting_;
  std::vector<bool> expected_;  // Results of what was sent; false: of a preparation.
  std::set<Notice> notices_;
  Failure failure_ = Failure::kNone;
  std::atomic<bool> is_interrupted_ = false;
};

}  // namespace

std::unique_ptr<SqlConnection> borrow_postgres(PGconn* connection, const SqlSettings& settings) {
  return std::make_unique<PostgresConnection>(connection, settings, true);
}

Result<std::unique_ptr<SqlConnection>> connect_postgres(const SqlSettings& settings) {
  std::vector<const char*> names;
  std::vector<const char*> values;
  const auto set = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    names.push_back(name);
    values.push_back(value.c_str());
  };
  const std::string port = std::to_string(settings.port);
  set("host", settings.socket.empty() ? settings.host : settings.socket);
  set("port", port);
  set("user", settings.user);
  set("password", settings.password);
  set("dbname", settings.database);
  set("sslmode", settings.tls);
  set("sslrootcert", settings.tls_ca);
  set("sslcert", settings.tls_certificate);
  set("sslkey", settings.tls_key);
  for (const auto& [name, value] : {std::pair{"application_name", "bide"}, std::pair{"connect_timeout", "5"},
                                    std::pair{"client_encoding", "UTF8"}, std::pair{"keepalives_idle", "10"},
                                    std::pair{"keepalives_interval", "5"}, std::pair{"keepalives_count", "2"},
                                    std::pair{"tcp_user_timeout", "15000"}}) {
    names.push_back(name);
    values.push_back(value);
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* const connection = PQconnectdbParams(names.data(), values.data(), 0);
  auto made = std::make_unique<PostgresConnection>(connection, settings);
  if (PQstatus(connection) != CONNECTION_OK) {
    const std::string text = one_line(PQerrorMessage(connection));
    const bool is_denied = text.find("authentication failed") != std::string::npos || text.find("no pg_hba.conf") != std::string::npos ||
                           text.find("permission denied") != std::string::npos || PQconnectionNeedsPassword(connection) != 0 ||
                           (text.find("role ") != std::string::npos && text.find("does not exist") != std::string::npos);
    const bool is_missing = text.find("database ") != std::string::npos && text.find("does not exist") != std::string::npos;
    return Error{is_denied ? ErrorCode::kPermissionDenied : is_missing ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
                 place_of(settings) + ": " + text};
  }
  if (PQserverVersion(connection) < 120000) {
    return Error{ErrorCode::kUnsupported, place_of(settings) + ": version " + std::to_string(PQserverVersion(connection) / 10000) +
                                              " is too old; needed is 12 or newer"};
  }
  if (Status prepared = made->prepare_session(); !prepared) return prepared.error();
  return std::unique_ptr<SqlConnection>(std::move(made));
}

}  // namespace bide::brokers::sql
