#include "brokers/sql/statements.h"

#include "platform/fatal.h"

namespace bide::brokers::sql {
namespace {

// In the order of JobRow::read().
constexpr std::string_view kJobColumns =
    "seq, grants, id, queue, kind, state, priority, due_ms, attempts, failed, timed_out, lost, crashed, unheard, flags, client, "
    "time_limit_ms, deadline_ms, limit_ms, expires_ms, finished_ms, settled, dead_reason, content_type, headers, retry, "
    "unique_key, worker, note, history, result, result_type, octet_length(body)";
constexpr std::string_view kPostgresNow = "floor(extract(epoch FROM now()) * 1000)::bigint";
constexpr std::string_view kMysqlNow = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string configured(std::string text, const SqlSettings& settings) {
  const bool postgres = settings.dialect == Dialect::kPostgres;
  replace_all(text, "{job}", kJobColumns);
  replace_all(text, "{now}", postgres ? kPostgresNow : kMysqlNow);
  replace_all(text, "{channel}", "'" + settings.schema + "'");
  if (settings.schema != "bide" || !postgres) {
    replace_all(text, "SCHEMA IF NOT EXISTS bide;", "SCHEMA IF NOT EXISTS " + settings.schema + ";");
    replace_all(text, "bide.", settings.schema + (postgres ? "." : "_"));
  }
  return text;
}

}  // namespace

std::map<std::string, std::string, std::less<>> statements_of(const SqlSettings& settings) {
  const bool postgres = settings.dialect == Dialect::kPostgres;
  std::string_view left = postgres ? kPostgresStatementsScript : kMysqlStatementsScript;
  constexpr std::string_view kMark = "\n-- @";
  std::map<std::string, std::string, std::less<>> found;
  std::size_t at = left.find(kMark);
  while (at != std::string_view::npos) {
    left.remove_prefix(at + kMark.size());
    at = left.find(kMark);
    const std::string_view entry = left.substr(0, at);
    const std::size_t bracket = entry.find('(');
    platform::require(bracket != std::string_view::npos, "a statement has a name and parameters");
    // Comments are for readers of the file.
    std::string text;
    for (std::size_t line = entry.find('\n'); line != std::string_view::npos && line + 1 < entry.size();) {
      const std::size_t end = entry.find('\n', line + 1);
      const std::string_view one = entry.substr(line + 1, end == std::string_view::npos ? end : end - line - 1);
      if (!one.starts_with("--")) text += std::string(one) + "\n";
      line = end;
    }
    found.emplace(entry.substr(0, bracket), configured(std::move(text), settings));
  }
  return found;
}

std::string schema_of(const SqlSettings& settings) {
  const bool postgres = settings.dialect == Dialect::kPostgres;
  return configured(std::string(postgres ? kPostgresSchemaScript : kMysqlSchemaScript), settings);
}

std::string body_schema_of(const SqlSettings& settings) {
  const bool postgres = settings.dialect == Dialect::kPostgres;
  return configured(std::string(postgres ? kPostgresBodySchemaScript : kMysqlBodySchemaScript), settings);
}

}  // namespace bide::brokers::sql
