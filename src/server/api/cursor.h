// Cursors as clients see them: the broker's own, and a checksum of it and of the question it belongs to. So a cursor
// that was changed, or is used with another filter, is told from one that was given out.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/inspector.h"

namespace bide::server {

std::string sealed_cursor(std::string_view cursor, const JobFilter& filter);  // Empty stays empty.
// Nothing when it is not one that sealed_cursor() gave for this filter.
std::optional<std::string> opened_cursor(std::string_view sealed, const JobFilter& filter);

}  // namespace bide::server
