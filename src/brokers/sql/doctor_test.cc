#include "brokers/sql/doctor.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::brokers::sql {
namespace {

// The findings that somebody should look at.
std::string trouble(Dialect dialect, const ServerSettings& settings) {
  std::string text;
  for (const database::Finding& finding : judge(dialect, settings)) {
    if (finding.ok) continue;
    text += finding.what + "\n";
    EXPECT_NE(finding.advice, "") << finding.what;
  }
  return text;
}

TEST(SqlDoctor, IsContentWithTheUsualSettings) {
  EXPECT_EQ(trouble(Dialect::kPostgres, {{"fsync", "on"}, {"full_page_writes", "on"}, {"synchronous_commit", "on"}}), "");
  EXPECT_EQ(trouble(Dialect::kMysql, {{"innodb_flush_log_at_trx_commit", "1"}, {"innodb_doublewrite", "1"}, {"max_allowed_packet", "67108864"}}), "");
}

TEST(SqlDoctor, NamesWhatLosesJobs) {
  EXPECT_EQ(trouble(Dialect::kPostgres, {{"fsync", "off"}, {"synchronous_commit", "off"}}),
            "fsync is off: a crash of the machine can destroy the database\n"
            "synchronous_commit is off: a crash of the server loses the jobs of its last moments\n");
  EXPECT_EQ(trouble(Dialect::kMysql, {{"innodb_flush_log_at_trx_commit", "2"}}),
            "innodb_flush_log_at_trx_commit is 2: a crash of the machine loses the jobs of its last second\n");
  EXPECT_EQ(trouble(Dialect::kMysql, {{"max_allowed_packet", "1048576"}}),
            "max_allowed_packet is 1048576: larger bodies and results do not get through\n");
}

}  // namespace
}  // namespace bide::brokers::sql
