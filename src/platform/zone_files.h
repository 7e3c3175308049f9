// The tz database of the system: a TZif file for each time zone, below /usr/share/zoneinfo or the folder that TZDIR
// names.

#pragma once

#include <string>
#include <vector>

#include "bide/result.h"

namespace bide::platform {

// Letters, digits, _ + - and slashes between them: never a path that leads elsewhere. kNotFound: there is no such zone.
Result<std::string> read_zone_file(const std::string& name);

// Another text after the file was changed or replaced. Empty: there is no such file.
std::string zone_file_version(const std::string& name);

// Sorted.
std::vector<std::string> zone_file_names();

}  // namespace bide::platform
