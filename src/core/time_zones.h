// TimeZones: time zones by name, each read once, and again when its data have changed. Where the data come from is an
// argument: files of the system, or a table.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bide/result.h"
#include "core/time_zone.h"

namespace bide::core {

struct ZoneData {
  // The TZif file of a zone. kNotFound: there is none of this name.
  std::function<Result<std::string>(const std::string& name)> read = {};
  // Another text as soon as read() gives other bytes.
  std::function<std::string(const std::string& name)> version = {};
  std::function<std::vector<std::string>()> names = {};
};

// Not safe to share between threads.
class TimeZones {
 public:
  explicit TimeZones(ZoneData data) : data_(std::move(data)) {}

  // UTC is always there. Data that have changed and cannot be used leave those that were read before.
  //
  // kInvalidArgument: there is no such zone, with the nearest name.
  Result<std::shared_ptr<const TimeZone>> find(const std::string& name);

 private:
  struct Known {
    std::string version;
    std::shared_ptr<const TimeZone> zone;
  };

  const ZoneData data_;
  std::map<std::string, Known> known_ = {};
};

}  // namespace bide::core
