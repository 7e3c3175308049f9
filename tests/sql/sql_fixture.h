// SqlTest: the fixture of tests on a database server of their own, for each of the dialects.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/sql_server.h"

namespace bide::sql_test {

struct Database {
  std::string name;
  bool is_installed = false;
  std::unique_ptr<support::SqlServer> (*start)() = nullptr;

  friend void PrintTo(const Database& database, std::ostream* out) { *out << database.name; }
};

template <class Server>
Database database(std::string name) {
  return {std::move(name), Server::is_installed(),
          []() -> std::unique_ptr<support::SqlServer> { return std::make_unique<Server>(); }};
}

inline auto every_database() {
  return testing::Values(database<support::PostgresServer>("postgres"), database<support::MariadbServer>("mariadb"));
}
inline std::string name_of(const testing::TestParamInfo<Database>& info) { return info.param.name; }

class SqlTest : public testing::TestWithParam<Database> {
 protected:
  void SetUp() override {
    if (!GetParam().is_installed) GTEST_SKIP() << "the database server is not installed";
    server_ = GetParam().start();
  }
  support::SqlServer& server() { return *server_; }
  bool is_postgres() const { return GetParam().name == "postgres"; }

  // True as soon as it holds; false when it does not for two minutes.
  static bool eventually(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  std::unique_ptr<support::SqlServer> server_;
};

}  // namespace bide::sql_test
