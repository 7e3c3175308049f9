// Doctor: looks at the settings of a database server and says what endangers jobs there. Changes nothing.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "bide/result.h"
#include "brokers/database/finding.h"
#include "brokers/sql/sql_settings.h"

namespace bide::brokers::sql {

// By name, as the server gives them: those of the statement "settings".
using ServerSettings = std::map<std::string, std::string, std::less<>>;

std::vector<database::Finding> judge(Dialect dialect, const ServerSettings& settings);

// An error: the server cannot be asked.
Result<std::vector<database::Finding>> examine_server(const SqlSettings& settings);

}  // namespace bide::brokers::sql
