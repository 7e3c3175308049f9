// OwnConnection: somebody's own connection to the server that the broker uses, too.

#pragma once

#include <postgresql/libpq-fe.h>
#include <mariadb/mysql.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "bide/mysql.h"
#include "bide/postgres.h"

namespace bide::sql_test {

class OwnConnection {
 public:
  virtual ~OwnConnection() = default;
  virtual void run(const std::string& statement) = 0;
  virtual Status settle(Settlement settlement) = 0;
  virtual Result<Enqueued> enqueue(Job job) = 0;
};

class OwnPostgres : public OwnConnection {
 public:
  OwnPostgres(const std::string& host, const std::string& port)
      : connection_(PQconnectdb(("host=" + host + " port=" + port + " user=bide dbname=bide").c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection_));
  }
  ~OwnPostgres() override { PQfinish(connection_); }
  void run(const std::string& statement) override {
    PGresult* const result = PQexec(connection_, statement.c_str());
    const ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) throw std::runtime_error(PQerrorMessage(connection_));
  }
  Status settle(Settlement settlement) override { return postgres::settle(connection_, std::move(settlement)); }
  Result<Enqueued> enqueue(Job job) override { return postgres::enqueue(connection_, std::move(job)); }

 private:
  PGconn* const connection_;
};

class OwnMysql : public OwnConnection {
 public:
  OwnMysql(const std::string& host, const std::string& port) : connection_(mysql_init(nullptr)) {
    if (mysql_real_connect(connection_, host.c_str(), "bide", "", "bide", static_cast<unsigned>(std::stoi(port)), nullptr, 0) == nullptr) {
      throw std::runtime_error(mysql_error(connection_));
    }
    run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }
  ~OwnMysql() override { mysql_close(connection_); }
  void run(const std::string& statement) override {
    if (mysql_query(connection_, statement.c_str()) != 0) throw std::runtime_error(mysql_error(connection_));
    mysql_free_result(mysql_store_result(connection_));
  }
  Status settle(Settlement settlement) override { return mysql::settle(connection_, std::move(settlement)); }
  Result<Enqueued> enqueue(Job job) override { return mysql::enqueue(connection_, std::move(job)); }

 private:
  MYSQL* const connection_;
};

inline std::unique_ptr<OwnConnection> connect(bool postgres, const std::string& host, const std::string& port) {
  if (postgres) return std::make_unique<OwnPostgres>(host, port);
  return std::make_unique<OwnMysql>(host, port);
}

}  // namespace bide::sql_test
