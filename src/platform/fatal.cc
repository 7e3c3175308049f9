#include "platform/fatal.h"

#include <cstdio>
#include <cstdlib>

namespace bide::platform {

void fatal_check(std::string_view what, const char* file, int line) {
  std::string_view name = file;
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::fprintf(stderr, "bide: internal error: %.*s (%.*s:%d)\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(name.size()), name.data(), line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace bide::platform
