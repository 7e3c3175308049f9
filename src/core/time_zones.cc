#include "core/time_zones.h"

#include <string_view>
#include <utility>

#include "core/did_you_mean.h"
#include "core/quote.h"

namespace bide::core {

Result<std::shared_ptr<const TimeZone>> TimeZones::find(const std::string& name) {
  static const auto utc = std::make_shared<const TimeZone>();
  if (name == "UTC") return utc;
  std::string version = data_.version(name);
  const auto known = known_.find(name);
  if (known != known_.end() && known->second.version == version) return known->second.zone;

  const Result<std::string> bytes = data_.read(name);
  Result<TimeZone> zone = bytes ? TimeZone::parse(*bytes) : Result<TimeZone>(bytes.error());
  if (!zone && known != known_.end()) return known->second.zone;
  if (zone) {
    auto shared = std::make_shared<const TimeZone>(std::move(*zone));
    known_.insert_or_assign(name, Known{std::move(version), shared});
    return shared;
  }
  if (bytes || bytes.error().code != ErrorCode::kNotFound) {
    return Error{ErrorCode::kInvalidArgument, "time zone " + quoted(name) + ": " + zone.error().message};
  }
  const std::vector<std::string> names = data_.names();
  if (names.empty()) {
    return Error{ErrorCode::kInvalidArgument, "unknown time zone " + quoted(name) +
                                                  "; this system has no time zones at all: install the package tzdata"};
  }
  const std::vector<std::string_view> words(names.begin(), names.end());
  std::string near = did_you_mean(name, words);
  if (near.empty()) near = "; write a name of the tz database, such as Europe/Berlin, or UTC";
  return Error{ErrorCode::kInvalidArgument, "unknown time zone " + quoted(name) + near};
}

}  // namespace bide::core
