#include "brokers/sql/statements.h"

#include <gtest/gtest.h>

namespace bide::brokers::sql {
namespace {

SqlSettings settings_for(Dialect dialect, std::string schema = "bide") {
  SqlSettings settings;
  settings.dialect = dialect;
  settings.schema = std::move(schema);
  return settings;
}

TEST(Statements, BothDialectsHaveTheSameNamesButForPickingAndTelling) {
  const auto postgres = statements_of(settings_for(Dialect::kPostgres));
  const auto mysql = statements_of(settings_for(Dialect::kMysql));
  EXPECT_GT(postgres.size(), 30u);
  for (const auto& [name, text] : postgres) {
    if (name != "pick" && name != "next_due") {
      EXPECT_TRUE(mysql.contains(name)) << name;
    }
  }
}

TEST(Statements, NothingIsLeftToBeFilledIn) {
  for (const Dialect dialect : {Dialect::kPostgres, Dialect::kMysql}) {
    for (const auto& [name, text] : statements_of(settings_for(dialect, "shop"))) {
      EXPECT_EQ(text.find('{'), std::string::npos) << name;
      EXPECT_EQ(text.find("bide."), std::string::npos) << name;
      EXPECT_EQ(text.find("--"), std::string::npos) << name;
      EXPECT_FALSE(text.empty()) << name;
    }
    const std::string schema = schema_of(settings_for(dialect, "shop"));
    EXPECT_EQ(schema.find("{channel}"), std::string::npos);
    EXPECT_EQ(schema.find("EXISTS bide"), std::string::npos);
    EXPECT_NE(schema.find(dialect == Dialect::kPostgres ? "shop.jobs" : "shop_jobs"), std::string::npos);
  }
}

}  // namespace
}  // namespace bide::brokers::sql
