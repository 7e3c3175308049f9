#include "brokers/sql/sql_settings.h"

#include <gtest/gtest.h>

namespace bide::brokers::sql {
namespace {

SqlSettings parsed(Dialect dialect, std::string_view rest) {
  const auto settings = parse_sql_url(dialect, rest);
  EXPECT_TRUE(settings) << settings.error().message;
  return settings ? *settings : SqlSettings();
}

std::string refused(std::string_view rest) {
  const auto settings = parse_sql_url(Dialect::kPostgres, rest);
  EXPECT_FALSE(settings) << rest;
  if (settings) return "";
  EXPECT_EQ(settings.error().code, ErrorCode::kInvalidArgument);
  return settings.error().message;
}

TEST(SqlSettings, EveryPartOfTheUrlIsTaken) {
  const SqlSettings settings =
      parsed(Dialect::kPostgres, "//ann:p%40ss@db.example:6000/shop?schema=jobs&client_timeout=3s&result_retention=2h&sslmode=require");
  EXPECT_EQ(settings.user, "ann");
  EXPECT_EQ(settings.password, "p@ss");
  EXPECT_EQ(settings.host, "db.example");
  EXPECT_EQ(settings.port, 6000);
  EXPECT_EQ(settings.database, "shop");
  EXPECT_EQ(settings.schema, "jobs");
  EXPECT_EQ(settings.client_timeout, Milliseconds(3000));
  EXPECT_EQ(settings.result_retention, Milliseconds(7'200'000));
  EXPECT_EQ(settings.tls, "require");
}

TEST(SqlSettings, WhatIsLeftOutIsTheUsual) {
  EXPECT_EQ(parsed(Dialect::kPostgres, "//host/shop").port, 5432);
  EXPECT_EQ(parsed(Dialect::kMysql, "//host/shop").port, 3306);
  EXPECT_EQ(parsed(Dialect::kMysql, "///shop?socket=/run/mysqld/mysqld.sock").socket, "/run/mysqld/mysqld.sock");
  EXPECT_EQ(parsed(Dialect::kPostgres, "//[::1]:5433/shop").host, "::1");
  EXPECT_EQ(parsed(Dialect::kPostgres, "//[::1]:5433/shop").port, 5433);
}

TEST(SqlSettings, WhatIsWrongIsNamedWithoutThePassword) {
  EXPECT_NE(refused("host/shop").find("postgres://user@host"), std::string::npos);
  EXPECT_NE(refused("//ann:secret@host").find("names no database"), std::string::npos);
  EXPECT_NE(refused("//host:0/shop").find("1 to 65535"), std::string::npos);
  EXPECT_NE(refused("//host/shop?schema=Not+good").find("schema"), std::string::npos);
  EXPECT_NE(refused("//host/shop?schma=jobs").find("'schema'"), std::string::npos);
  EXPECT_NE(refused("//host/shop?pool_mode=statement").find("session or transaction"), std::string::npos);
  for (const char* const url : {"//ann:secret@host", "//ann:secret@host:0/shop", "//ann:secret@host/a/b", "//ann:secret@[host/shop"}) {
    EXPECT_EQ(refused(url).find("secret"), std::string::npos) << url;
  }
}

TEST(SqlSettings, PlacesAreToldWithoutCredentials) {
  EXPECT_EQ(place_of(parsed(Dialect::kPostgres, "//ann:secret@host/shop")), "PostgreSQL at host:5432, database shop");
}

}  // namespace
}  // namespace bide::brokers::sql
