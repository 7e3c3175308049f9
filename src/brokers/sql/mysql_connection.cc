// MariaDB and MySQL by libmariadb: prepared statements. Rows of parameters for one statement are sent together where the
// server can (MariaDB), one by one otherwise.

#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "brokers/sql/sql_connection.h"
#include "brokers/sql/statements.h"
#include "core/text.h"
#include "platform/fatal.h"
#include "platform/random.h"

namespace bide::brokers::sql {
namespace {

struct MyDeleter {
  bool is_borrowed = false;
  void operator()(MYSQL* connection) const {
    if (!is_borrowed) mysql_close(connection);
  }
  void operator()(MYSQL_STMT* statement) const { mysql_stmt_close(statement); }
  void operator()(MYSQL_RES* result) const { mysql_free_result(result); }
};
using MyStatement = std::unique_ptr<MYSQL_STMT, MyDeleter>;
using MyResult = std::unique_ptr<MYSQL_RES, MyDeleter>;

std::string one_line_of(const char* text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

// $1, $2 ... in a text become question marks; which parameter each of them is. $1[] is a list of so many.
struct Translated {
  std::string text;
  std::vector<std::size_t> places;  // For each question mark. Elements of the list are numbered from kList on.
  static constexpr std::size_t kList = 1'000'000;
};

Translated translated(const std::string& text, std::size_t list_size) {
  Translated made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size() || !core::is_digit(text[i + 1])) {
      made.text += text[i];
      continue;
    }
    std::size_t number = 0;
    for (; i + 1 < text.size() && core::is_digit(text[i + 1]); ++i) number = number * 10 + static_cast<std::size_t>(text[i + 1] - '0');
    if (text.compare(i + 1, 2, "[]") != 0) {
      made.text += '?';
      made.places.push_back(number - 1);
      continue;
    }
    i += 2;
    for (std::size_t element = 0; element < list_size; ++element) {
      made.text += element == 0 ? "?" : ",?";
      made.places.push_back(Translated::kList + element);
    }
  }
  return made;
}

class MysqlConnection : public SqlConnection {
 public:
  MysqlConnection(MYSQL* connection, const SqlSettings& settings, bool is_borrowed = false)
      : connection_(connection, MyDeleter{is_borrowed}),
        is_borrowed_(is_borrowed),
        place_(place_of(settings)),
        longest_wait_(settings.longest_wait),
        statements_(statements_of(settings)),
        lock_name_("bide." + settings.schema + ".") {
    platform::SystemRandom random;
    lock_name_ += std::to_string(random.next());
    if (is_borrowed) can_bulk_ = mariadb_connection(connection) != 0;
  }

  bool open(const SqlSettings& settings) {
    const bool connected = mysql_real_connect(connection_.get(), settings.socket.empty() ? settings.host.c_str() : nullptr,
                                              settings.user.c_str(), settings.password.c_str(), settings.database.c_str(),
                                              static_cast<unsigned>(settings.port),
                                              settings.socket.empty() ? nullptr : settings.socket.c_str(),
                                              CLIENT_MULTI_STATEMENTS) != nullptr;
    if (connected) socket_ = mysql_get_socket(connection_.get());
    return connected;
  }

  Status prepare_session() {
    can_bulk_ = mariadb_connection(connection_.get()) != 0;
    return text("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }

  void begin() override {
    if (!is_borrowed_) waiting_.push_back({.statement = "BEGIN", .is_text = true});
  }

  void add(std::string_view statement, Values values) override {
    waiting_.push_back({.statement = std::string(statement), .rows = {std::move(values)}});
  }
  void add_list(std::string_view statement, List list, Values others) override {
    // The first parameter is the list.
    others.insert(others.begin(), Value::integer(0));
    waiting_.push_back({.statement = std::string(statement), .rows = {std::move(others)}, .list = std::move(list), .has_list = true});
  }
  void add_each(std::string_view statement, std::vector<Values> rows) override {
    if (!rows.empty()) waiting_.push_back({.statement = std::string(statement), .rows = std::move(rows)});
  }
  void add_notice(Notice notice) override { notices_.insert(std::move(notice)); }

  Result<std::vector<Rows>> run() override {
    failure_ = Failure::kNone;
    std::vector<Rows> all;
    for (const Waiting& one : std::exchange(waiting_, {})) {
      auto rows = one.is_text ? run_text(one.statement) : execute(one);
      if (!rows) return rows.error();
      if (!one.is_text) all.push_back(std::move(*rows));
    }
    return all;
  }

  Result<std::vector<Rows>> commit() override {
    const bool has_notices = !notices_.empty();
    std::vector<Values> told;
    for (const Notice& notice : std::exchange(notices_, {})) {
      told.push_back({Value::text(notice.before), Value::integer(notice.due_ms), Value::integer(notice.delay_ms),
                      Value::text(notice.behind)});
    }
    add_each("notify", std::move(told));
    auto all = run();
    if (!all) return all;
    if (has_notices) all->pop_back();
    if (is_borrowed_) return all;
    if (Status committed = text("COMMIT"); !committed) {
      Error error = committed.error();
      if (failure_ == Failure::kLost) error.code = ErrorCode::kUnconfirmed;
      return error;
    }
    if (has_notices) ring();
    return all;
  }

  void rollback() override {
    waiting_.clear();
    notices_.clear();
    if (is_borrowed_ || is_lost()) return;
    const Failure before = failure_;
    (void)text("ROLLBACK");
    if (failure_ != Failure::kLost) failure_ = before;
  }

  Failure last_failure() const override { return is_borrowed_ ? Failure::kRefused : failure_; }
  bool is_borrowed() const override { return is_borrowed_; }
  std::int64_t number() const override { return static_cast<std::int64_t>(mysql_thread_id(connection_.get())); }
  void wake_listeners() override { ring(); }

  Status execute(const std::string& script) override { return text(script); }

  Status execute_locked(const std::string& name, const std::function<Status()>& change) override {
    if (Status locked = text("SELECT GET_LOCK('" + name + "', 60)"); !locked) return locked;
    Status changed = change();
    (void)text("SELECT RELEASE_LOCK('" + name + "')");
    return changed;
  }

  Status listen() override {
    add("listen", {Value::text(lock_name_)});
    add("add_listener", {Value::text(lock_name_)});
    add("forget_notices", {});
    const auto answers = run();
    if (!answers) return answers.error();
    last_notice_ = answers->front().integer(0, 1);
    return {};
  }

  Result<Heard> wait(Milliseconds at_most) override {
    at_most = std::min(at_most, longest_wait_);
    add("sleep", {Value::integer(last_notice_), Value::integer(at_most.count())});
    if (const auto slept = run(); !slept && failure_ != Failure::kInterrupted) return slept.error();
    add("notices", {Value::integer(last_notice_)});
    const auto answers = run();
    if (!answers) return answers.error();
    Heard heard;
    const Rows& rows = answers->front();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      last_notice_ = std::max(last_notice_, rows.integer(i, 0));
      heard.notices.push_back(rows.bytes(i, 1));
    }
    // Woken without news: it was written by a transaction that got its number early and committed late. Or nobody woke us, and
    // somebody may have died between its commit and telling of it.
    heard.missed = heard.notices.empty();
    if (++waits_ % kForgetEvery == 0) {
      add("forget_notices", {});
      (void)run();
    }
    return heard;
  }

  bool is_lost() const override { return is_interrupted_ || failure_ == Failure::kLost; }
  void interrupt() override {
    is_interrupted_ = true;
    shutdown(socket_, SHUT_RDWR);
  }
  bool picks_by_priority() const override { return true; }

  Error failed(unsigned code, const char* message) {
    const std::string words = place_ + ": " + one_line_of(message) + " (" + std::to_string(code) + ")";
    switch (code) {
      case CR_SERVER_GONE_ERROR:
      case CR_SERVER_LOST:
      case ER_SERVER_SHUTDOWN:
      case ER_CONNECTION_KILLED:
      case ER_NEW_ABORTING_CONNECTION:
      case CR_CONNECTION_ERROR:
      case CR_CONN_HOST_ERROR:
        failure_ = Failure::kLost;
        return {ErrorCode::kUnavailable, words};
      case ER_LOCK_DEADLOCK:
      case ER_LOCK_WAIT_TIMEOUT:
      case ER_CHECKREAD: failure_ = Failure::kConflict; break;
      case ER_DUP_ENTRY: failure_ = Failure::kDuplicate; break;
      case ER_QUERY_INTERRUPTED: failure_ = Failure::kInterrupted; break;
      default: failure_ = Failure::kRefused;
    }
    if (is_interrupted_) return failure_ = Failure::kLost, Error{ErrorCode::kUnavailable, words};
    if (code == ER_RECORD_FILE_FULL || code == ER_DISK_FULL) return {ErrorCode::kDiskFull, words};
    if (code == ER_ACCESS_DENIED_ERROR || code == ER_DBACCESS_DENIED_ERROR || code == ER_TABLEACCESS_DENIED_ERROR) {
      return {ErrorCode::kPermissionDenied, words};
    }
    if (code == ER_OPTION_PREVENTS_STATEMENT || code == ER_CON_COUNT_ERROR) return {ErrorCode::kUnavailable, words};
    if (code == ER_BAD_DB_ERROR) return {ErrorCode::kNotFound, words};
    if (code == ER_NET_PACKET_TOO_LARGE) return {ErrorCode::kInvalidArgument, words + "; raise max_allowed_packet of the server"};
    return {ErrorCode::kIoError, words};
  }

  MYSQL* raw() { return connection_.get(); }

 private:
  static constexpr int kForgetEvery = 64;

  struct Waiting {
    std::string statement = {};
    std::vector<Values> rows = {};
    List list = {};
    bool has_list = false;
    bool is_text = false;
  };
  struct Prepared {
    MyStatement statement;
    std::vector<std::size_t> places;
  };

  Status text(const std::string& statement) {
    const auto rows = run_text(statement);
    return rows ? Status() : Status(rows.error());
  }

  // One or several statements; what they give is dropped.
  Result<Rows> run_text(const std::string& statement) {
    failure_ = Failure::kNone;
    MYSQL* const connection = connection_.get();
    int status = mysql_real_query(connection, statement.data(), statement.size());
    while (status == 0) {
      MyResult(mysql_store_result(connection)).reset();
      status = mysql_next_result(connection);
    }
    if (status > 0) return failed(mysql_errno(connection), mysql_error(connection));
    return Rows();
  }

  // Lists are filled up by their last element to a power of two, so that there are few different statements.
  Result<Prepared*> prepared(const Waiting& one, std::size_t list_size) {
    const std::string key = one.statement + "/" + std::to_string(list_size);
    if (const auto found = prepared_.find(key); found != prepared_.end()) return &found->second;
    const auto found = statements_.find(one.statement);
    platform::require(found != statements_.end(), "a statement that is asked for is in the file");
    Translated made = translated(found->second, list_size);
    Prepared fresh{MyStatement(mysql_stmt_init(connection_.get())), std::move(made.places)};
    if (mysql_stmt_prepare(fresh.statement.get(), made.text.data(), made.text.size()) != 0) {
      return failed(mysql_stmt_errno(fresh.statement.get()), mysql_stmt_error(fresh.statement.get()));
    }
    return &prepared_.emplace(key, std::move(fresh)).first->second;
  }

  Result<Rows> execute(const Waiting& one) {
    if (is_interrupted_) return failed(CR_SERVER_LOST, "the connection was closed");
    std::size_t list_size = 0;
    if (one.has_list) {
      list_size = 1;
      while (list_size < one.list.size()) list_size *= 2;
      if (one.list.empty()) return Rows();
    }
    const auto ready = prepared(one, list_size);
    if (!ready) return ready.error();
    Prepared& statement = **ready;
    if (one.rows.size() > 1 && !can_bulk_) {
      for (const Values& row : one.rows) {
        if (const auto done = execute(statement, one, list_size, &row, 1); !done) return done.error();
      }
      return Rows();
    }
    return execute(statement, one, list_size, one.rows.data(), one.rows.size());
  }

  Result<Rows> execute(Prepared& prepared, const Waiting& one, std::size_t list_size, const Values* rows, std::size_t count) {
    MYSQL_STMT* const statement = prepared.statement.get();
    const auto fail = [&] { return failed(mysql_stmt_errno(statement), mysql_stmt_error(statement)); };
    const std::size_t parameters = prepared.places.size();
    std::vector<MYSQL_BIND> binds(parameters);
    // Column by column: integers lie side by side, texts are pointers and lengths.
    std::vector<std::vector<long long>> integers(parameters);
    std::vector<std::vector<char*>> texts(parameters);
    std::vector<std::vector<unsigned long>> lengths(parameters);
    std::vector<std::vector<char>> indicators(parameters);
    const bool is_bulk = count > 1;
    for (std::size_t p = 0; p < parameters; ++p) {
      MYSQL_BIND& bind = binds[p];
      std::memset(&bind, 0, sizeof bind);
      const std::size_t place = prepared.places[p];
      const auto value_of = [&](std::size_t row) -> const Value& {
        if (place < Translated::kList) return rows[row][place];
        return one.list[std::min(place - Translated::kList, one.list.size() - 1)];
      };
      const bool is_integer = value_of(0).type() == Value::Type::kInteger;
      for (std::size_t row = 0; row < count; ++row) {
        const Value& value = value_of(row);
        indicators[p].push_back(value.is_null() ? STMT_INDICATOR_NULL : STMT_INDICATOR_NONE);
        if (is_integer) {
          integers[p].push_back(value.integer());
        } else {
          texts[p].push_back(const_cast<char*>(value.bytes().data()));
          lengths[p].push_back(value.bytes().size());
        }
      }
      bind.buffer_type = is_integer ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
      if (is_bulk) {
        bind.buffer = is_integer ? static_cast<void*>(integers[p].data()) : static_cast<void*>(texts[p].data());
        bind.u.indicator = indicators[p].data();
      } else {
        bind.buffer = is_integer ? static_cast<void*>(integers[p].data()) : static_cast<void*>(texts[p].front());
        if (value_of(0).is_null()) bind.buffer_type = MYSQL_TYPE_NULL;
      }
      if (!is_integer) {
        bind.length = lengths[p].data();
        if (!is_bulk) bind.buffer_length = lengths[p].front();
      }
    }
    (void)list_size;
    unsigned array_size = is_bulk ? static_cast<unsigned>(count) : 0;
    if (can_bulk_) mysql_stmt_attr_set(statement, STMT_ATTR_ARRAY_SIZE, &array_size);
    if (parameters > 0 && mysql_stmt_bind_param(statement, binds.data()) != 0) return fail();
    if (mysql_stmt_execute(statement) != 0) return fail();
    return fetch(statement);
  }

  Result<Rows> fetch(MYSQL_STMT* statement) {
    const auto fail = [&] { return failed(mysql_stmt_errno(statement), mysql_stmt_error(statement)); };
    const unsigned columns = mysql_stmt_field_count(statement);
    if (columns == 0) return Rows();
    const MyResult fields(mysql_stmt_result_metadata(statement));
    my_bool yes = 1;
    mysql_stmt_attr_set(statement, STMT_ATTR_UPDATE_MAX_LENGTH, &yes);
    if (mysql_stmt_store_result(statement) != 0) return fail();
    const MyResult measured(mysql_stmt_result_metadata(statement));
    std::vector<MYSQL_BIND> binds(columns);
    std::vector<std::string> buffers(columns);
    std::vector<long long> integers(columns);
    std::vector<unsigned long> lengths(columns);
    std::vector<my_bool> nulls(columns);
    for (unsigned i = 0; i < columns; ++i) {
      std::memset(&binds[i], 0, sizeof binds[i]);
      const MYSQL_FIELD* const field = mysql_fetch_field_direct(measured.get(), i);
      const bool is_integer = field->type == MYSQL_TYPE_TINY || field->type == MYSQL_TYPE_SHORT || field->type == MYSQL_TYPE_LONG ||
                              field->type == MYSQL_TYPE_LONGLONG || field->type == MYSQL_TYPE_INT24;
      binds[i].is_null = &nulls[i];
      binds[i].length = &lengths[i];
      if (is_integer) {
        binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
        binds[i].buffer = &integers[i];
      } else {
        buffers[i].resize(std::max<unsigned long>(field->max_length, 1));
        binds[i].buffer_type = MYSQL_TYPE_BLOB;
        binds[i].buffer = buffers[i].data();
        binds[i].buffer_length = buffers[i].size();
      }
    }
    if (mysql_stmt_bind_result(statement, binds.data()) != 0) return fail();
    Rows rows(columns);
    for (;;) {
      const int status = mysql_stmt_fetch(statement);
      if (status == MYSQL_NO_DATA) break;
      if (status == 1) return fail();
      for (unsigned i = 0; i < columns; ++i) {
        Rows::Cell& cell = rows.add();
        cell.is_null = nulls[i] != 0;
        if (cell.is_null) continue;
        if (binds[i].buffer_type == MYSQL_TYPE_LONGLONG) {
          cell.integer = integers[i];
        } else {
          cell.bytes.assign(buffers[i].data(), lengths[i]);
        }
      }
    }
    mysql_stmt_free_result(statement);
    return rows;
  }

  // Wakes those who sleep. They would look by themselves soon, so an error is not worth a word.
  void ring() {
    add("listeners", {});
    const auto answers = run();
    if (!answers) return;
    const Rows& rows = answers->front();
    std::vector<Values> gone;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto connection = rows.integer_or_null(i, 1);
      if (connection) {
        (void)text("KILL QUERY " + std::to_string(*connection));
      } else {
        gone.push_back({Value::bytes(rows.bytes(i, 0))});
      }
      if (is_lost()) return;
    }
    if (gone.size() > kForgottenListeners) {
      add_each("forget_listener", std::move(gone));
      (void)run();
    }
    if (!is_lost()) failure_ = Failure::kNone;
  }

  static constexpr std::size_t kForgottenListeners = 8;

  const std::unique_ptr<MYSQL, MyDeleter> connection_;
  const bool is_borrowed_;
  int socket_ = -1;
  const std::string place_;
  const Milliseconds longest_wait_;
  const std::map<std::string, std::string, std::less<>> statements_;
  std::string lock_name_;  // Held while this connection listens.
  std::map<std::string, Prepared> prepared_;
  std::vector<Waiting> waiting_;
  std::set<Notice> notices_;
  std::int64_t last_notice_ = 0;
  int waits_ = 0;
  bool can_bulk_ = false;
  Failure failure_ = Failure::kNone;
  std::atomic<bool> is_interrupted_ = false;
};

}  // namespace

std::unique_ptr<SqlConnection> borrow_mysql(MYSQL* connection, const SqlSettings& settings) {
  return std::make_unique<MysqlConnection>(connection, settings, true);
}

Result<std::unique_ptr<SqlConnection>> connect_mysql(const SqlSettings& settings) {
  auto made = std::make_unique<MysqlConnection>(mysql_init(nullptr), settings);
  MYSQL* const raw = made->raw();
  const unsigned connect_timeout_s = 5;
  const auto answer_timeout_s = static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(settings.patience).count());
  const unsigned long packet = 1ul << 30;
  mysql_options(raw, MYSQL_OPT_CONNECT_TIMEOUT, &connect_timeout_s);
  mysql_options(raw, MYSQL_OPT_READ_TIMEOUT, &answer_timeout_s);
  mysql_options(raw, MYSQL_OPT_WRITE_TIMEOUT, &answer_timeout_s);
  mysql_options(raw, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
  mysql_options(raw, MYSQL_SET_CHARSET_NAME, "binary");
  if (!settings.tls.empty() && settings.tls != "disable") {
    my_bool yes = 1;
    const bool verifies = settings.tls.starts_with("verify");
    if (settings.tls != "prefer") mysql_options(raw, MYSQL_OPT_SSL_ENFORCE, &yes);
    if (verifies) mysql_options(raw, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
    if (!settings.tls_ca.empty()) mysql_options(raw, MYSQL_OPT_SSL_CA, settings.tls_ca.c_str());
    if (!settings.tls_certificate.empty()) mysql_options(raw, MYSQL_OPT_SSL_CERT, settings.tls_certificate.c_str());
    if (!settings.tls_key.empty()) mysql_options(raw, MYSQL_OPT_SSL_KEY, settings.tls_key.c_str());
  }
  if (!made->open(settings)) {
    Error error = made->failed(mysql_errno(raw), mysql_error(raw));
    if (error.code == ErrorCode::kIoError) error.code = ErrorCode::kUnavailable;
    return error;
  }
  const unsigned long version = mysql_get_server_version(raw);
  const bool is_mariadb = mariadb_connection(raw) != 0;
  if (version < (is_mariadb ? 100600u : 80000u)) {
    return Error{ErrorCode::kUnsupported, place_of(settings) + ": version " + mysql_get_server_info(raw) +
                                              " is too old; needed is MariaDB 10.6 or MySQL 8"};
  }
  if (Status ready = made->prepare_session(); !ready) return ready.error();
  return std::unique_ptr<SqlConnection>(std::move(made));
}

}  // namespace bide::brokers::sql
