// Statements: the SQL of a dialect by name, out of the files that are compiled in, with the schema's name in it.

#pragma once

#include <map>
#include <string>
#include <string_view>

#include "brokers/sql/sql_settings.h"

namespace bide::brokers::sql {

extern const std::string_view kPostgresSchemaScript;
extern const std::string_view kPostgresStatementsScript;
extern const std::string_view kPostgresBodySchemaScript;
extern const std::string_view kMysqlSchemaScript;
extern const std::string_view kMysqlStatementsScript;
extern const std::string_view kMysqlBodySchemaScript;

inline constexpr int kSchemaVersion = 1;

// By name. Aborts when the file is not what its head says.
std::map<std::string, std::string, std::less<>> statements_of(const SqlSettings& settings);

// Everything that creates the tables in an empty database.
std::string schema_of(const SqlSettings& settings);
// The same, for the bodies of jobs that are elsewhere.
std::string body_schema_of(const SqlSettings& settings);

}  // namespace bide::brokers::sql
