// compact_store: gives back the disk space that nothing needs, of a store that nobody has open.

#pragma once

#include <cstdint>
#include <string>

namespace bide::cli {

struct CompactReport {
  std::uint64_t before_bytes = 0;
  std::uint64_t after_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::string why_not_less = {};  // Empty: there is nothing to explain.
};

// Throws Failure.
// `store` is a directory, or the URL of one with its settings: they say what is still needed.
CompactReport compact_store(const std::string& store);

}  // namespace bide::cli
