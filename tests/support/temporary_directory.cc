#include "support/temporary_directory.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "platform/fatal.h"

namespace bide::support {

TemporaryDirectory::TemporaryDirectory()
    : path_((std::filesystem::temp_directory_path() / "bide_test_XXXXXX").string()) {
  platform::require(::mkdtemp(path_.data()) != nullptr, "a temporary directory can be made");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;  // What a test has locked away or mounted stays; a destructor must not end the run for it.
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace bide::support
