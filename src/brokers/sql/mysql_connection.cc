#include "brokers/sql/sql_connection.h"

namespace bide::brokers::sql {

Result<std::unique_ptr<SqlConnection>> connect_mysql(const SqlSettings&) {
  return Error{ErrorCode::kUnsupported, "not built in yet"};
}

}  // namespace bide::brokers::sql
