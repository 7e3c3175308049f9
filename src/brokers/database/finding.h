// Finding: what a look at a database server found out, for people.

#pragma once

#include <string>

namespace bide::brokers::database {

struct Finding {
  bool ok = true;
  std::string what = {};
  std::string advice = {};
};

}  // namespace bide::brokers::database
