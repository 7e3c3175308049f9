// What `bide bench broker` needs of a PostgreSQL or MariaDB server.

#pragma once

#include <string_view>

#include "bench/broker_setup.h"
#include "bide/result.h"

namespace bide::bench {

// `rest` is what is behind the colon of the scheme. The bare figures are of a table with a queue, a state, a due time, an index
// over them and 200 bytes, filled by statements of a thousand rows each: the least that a queue with due times can do.
Result<BrokerSetup> sql_setup(std::string_view url, std::string_view rest, bool postgres);

}  // namespace bide::bench
