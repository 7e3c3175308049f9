// The limits that the engine is held against: a log that appends bytes and syncs, and knows nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bide/result.h"

namespace bide::bench {

inline constexpr std::size_t kBodyBytes = 200;
inline constexpr std::size_t kBatch = 4096;

// What one job of the benchmark takes in the journal: record headers and fields as in docs/formats/journal.md, with a
// kind and a queue of five letters.
inline constexpr std::size_t kAcceptedBytes = 10 + 16 + 2 + 8 + 4 + 6 + 6 + 2 + kBodyBytes;
inline constexpr std::size_t kGrantedBytes = 16 + 3;
inline constexpr std::size_t kDoneBytes = 10 + 16 + 1 + 8 + 3 + 1;

// Appends to a file that grows, as any log does. The file is removed at the end.
class BareLog {
 public:
  static Result<BareLog> create(const std::string& path);
  BareLog(BareLog&& other) noexcept;
  BareLog(const BareLog&) = delete;
  BareLog& operator=(const BareLog&) = delete;
  BareLog& operator=(BareLog&&) = delete;
  ~BareLog();

  // So many records of that size, copied one by one and written at once.
  Status append(std::size_t records, std::size_t record_bytes);
  Status sync();

 private:
  BareLog(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::string path_;
  std::string buffer_;
  std::uint64_t offset_ = 0;
};

// Jobs a second when a batch of jobs is appended and synced, the grants appended, the ends appended and synced.
Result<double> bare_cycle_rate(const std::string& directory, std::uint64_t jobs);
// Jobs a second when they are only appended, a sync a batch.
Result<double> bare_load_rate(const std::string& directory, std::uint64_t jobs);

// A file of 4 MiB that is overwritten in pieces of 4 KiB, each synced.
class BareOverwrite {
 public:
  static Result<BareOverwrite> create(const std::string& path);
  BareOverwrite(BareOverwrite&& other) noexcept;
  BareOverwrite(const BareOverwrite&) = delete;
  BareOverwrite& operator=(const BareOverwrite&) = delete;
  BareOverwrite& operator=(BareOverwrite&&) = delete;
  ~BareOverwrite();

  Status overwrite();

 private:
  BareOverwrite(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::string path_;
  std::uint64_t offset_ = 0;
};

}  // namespace bide::bench
