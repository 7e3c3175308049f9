#include "brokers/sql/doctor.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "brokers/sql/sql_store.h"
#include "core/number_text.h"

namespace bide::brokers::sql {

namespace {

using database::Finding;

// A setting without which committed jobs can be lost.
struct Needed {
  Dialect dialect;
  std::string_view name;
  std::string_view unsafe;  // This value is.
  std::string_view what;    // What is lost then, and when.
  std::string_view advice;
};

constexpr auto kNeeded = std::to_array<Needed>({
    {Dialect::kPostgres, "fsync", "off", "a crash of the machine can destroy the database", "turn fsync on"},
    {Dialect::kPostgres, "full_page_writes", "off", "a crash of the machine can damage pages", "turn full_page_writes on"},
    {Dialect::kPostgres, "synchronous_commit", "off", "a crash of the server loses the jobs of its last moments",
     "set synchronous_commit to on, at least for the role that bide uses"},
    {Dialect::kMysql, "innodb_flush_log_at_trx_commit", "0", "a crash of the server loses the jobs of its last second",
     "set innodb_flush_log_at_trx_commit to 1"},
    {Dialect::kMysql, "innodb_flush_log_at_trx_commit", "2", "a crash of the machine loses the jobs of its last second",
     "set innodb_flush_log_at_trx_commit to 1"},
    {Dialect::kMysql, "innodb_doublewrite", "0", "a crash of the machine can damage pages", "turn innodb_doublewrite on"},
    {Dialect::kMysql, "innodb_doublewrite", "OFF", "a crash of the machine can damage pages", "turn innodb_doublewrite on"},
});

// A body, escaped and with the rest of its statement.
constexpr std::uint64_t kLargestPacket = 2 * Limits::kBodyBytes + 1024 * 1024;

}  // namespace

std::vector<Finding> judge(Dialect dialect, const ServerSettings& settings) {
  std::vector<Finding> findings;
  for (const Needed& needed : kNeeded) {
    if (needed.dialect != dialect) continue;
    const auto found = settings.find(needed.name);
    if (found == settings.end() || found->second != needed.unsafe) continue;
    findings.push_back({false, std::string(needed.name) + " is " + found->second + ": " + std::string(needed.what), std::string(needed.advice)});
  }
  if (findings.empty()) findings.push_back({true, "what the server has confirmed is on its disk", ""});
  if (const auto packet = settings.find("max_allowed_packet"); packet != settings.end()) {
    const auto bytes = core::parse_integer<std::uint64_t>(packet->second);
    if (bytes && *bytes < kLargestPacket) {
      findings.push_back({false, "max_allowed_packet is " + packet->second + ": larger bodies and results do not get through",
                          "raise it to " + std::to_string(kLargestPacket) + ", or keep bodies smaller"});
    }
  }
  return findings;
}

Result<std::vector<Finding>> examine_server(const SqlSettings& settings) {
  auto connection = connect_to(settings);
  if (!connection) return connection.error();
  (*connection)->begin();
  (*connection)->add("settings", {});
  const auto answers = (*connection)->commit();
  if (!answers) return answers.error();
  ServerSettings found;
  const Rows& rows = answers->back();
  for (std::size_t i = 0; i < rows.size(); ++i) found[rows.bytes(i, 0)] = rows.bytes(i, 1);
  return judge(settings.dialect, found);
}

}  // namespace bide::brokers::sql
