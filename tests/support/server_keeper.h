// ServerKeeper: ends the servers of a test that was killed, and removes their folder. A small shell that outlives the test
// waits for its end, then ends every process that has BIDE_TEST_SERVER=<folder> in its environment.

#pragma once

#include <string>

#include "platform/descriptor.h"

namespace bide::support {

class ServerKeeper {
 public:
  explicit ServerKeeper(const std::string& directory);

  // What the servers get into their environment.
  static std::string mark(const std::string& directory) { return "BIDE_TEST_SERVER=" + directory; }

 private:
  platform::Descriptor end_;  // Closed by the end of this process, however it ends.
};

}  // namespace bide::support
