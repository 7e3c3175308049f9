// FaultPlan: which operation of a simulated disk is to fail, and how. Counts the operations, too.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace bide::support {

enum class Operation {
  kRead,
  kWrite,
  kSync,
  kAllocate,
  kTruncate,
  kCreate,  // open() of a file that was not there.
  kRename,
  kRemove,
  kMakeDirectory,
  kSyncDirectory,
};
inline constexpr std::size_t kOperations = 10;

const char* to_string(Operation operation);

enum class Fault {
  kIoError,     // EIO, and nothing was done. A failed sync is worse: see SimulatedDisk.
  kDiskFull,    // ENOSPC, and nothing was done; the same for a sync.
  kShortWrite,  // A part of the range is written, then EIO. For other operations the same as kIoError.
};

struct PlannedFault {
  Operation operation = Operation::kWrite;
  std::uint64_t nth = 1;  // Counted from now; 1 is the next one.
  Fault fault = Fault::kIoError;
  std::uint64_t times = 1;  // So many operations of this kind in a row.
};

class FaultPlan {
 public:
  void add(const PlannedFault& planned);
  // Counts the operation and says how it is to fail, if it is.
  std::optional<Fault> next(Operation operation);

  std::uint64_t count(Operation operation) const { return counts_[static_cast<std::size_t>(operation)]; }
  std::uint64_t fired() const { return fired_; }
  // Failures that were planned and have not come up. A test in which some are left at the end has not tested them.
  std::uint64_t outstanding() const;

 private:
  struct Scheduled {
    Operation operation;
    std::uint64_t first;  // In operations of its kind since the beginning, from 1.
    std::uint64_t last;
    Fault fault;
  };

  std::array<std::uint64_t, kOperations> counts_{};
  std::vector<Scheduled> scheduled_;
  std::uint64_t fired_ = 0;
};

}  // namespace bide::support
