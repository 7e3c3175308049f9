// copy_store: a copy of a data directory that nobody has open, synced and checked.

#pragma once

#include <cstdint>
#include <string>

namespace bide::cli {

struct StoreCopy {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t live_jobs = 0;
};

// Throws Failure: the store is open or damaged, or `to` is there and not empty.
StoreCopy copy_store(const std::string& from, const std::string& to);
// Only the files, whatever is in them, to a directory that is there.
StoreCopy copy_store_files(const std::string& from, const std::string& to);

}  // namespace bide::cli
