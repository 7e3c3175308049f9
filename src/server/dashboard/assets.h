// The files of the dashboard (web/), as they were when the program was built.

#pragma once

#include <string_view>
#include <vector>

namespace bide::server {

struct Asset {
  std::string_view path;
  std::string_view content_type;
  std::string_view gzip;
};

extern const std::vector<Asset> kAssets;  // The page itself first, as "/".

}  // namespace bide::server
