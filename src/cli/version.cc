#include "cli/version.h"

namespace bide::cli {

std::string_view version() { return BIDE_VERSION; }

}  // namespace bide::cli
