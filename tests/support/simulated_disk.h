// SimulatedDisk: a disk in memory that can lose power, fail and fill up, and does so the same way for the same seed.
//
//   SimulatedDisk disk(seed);
//   disk.on_operation([&](const OperationInfo&) { images.push_back(disk.clone()); });
//   ... run the engine on it ...
//   for (auto& image : images) { image->crash(); ... open the engine on it, check ... }
//
// What survives a crash:
//   synced file                        always, as long as its name does
//   written, not synced                any mixture of old and new, page by page and sector by sector; room that was
//                                      added may read as zeros or as pages of files long gone
//   name made, renamed or removed      after sync_directory() of its directory; before that, perhaps
// A sync that fails loses some of the pages for good and counts all of them as clean, so that the next sync succeeds:
// that is what Linux does. The view of the running process does not change by it.
//
// Safe to share between threads; a run is repeatable only if the order of its operations is.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/disk.h"
#include "support/fault_plan.h"

namespace bide::support {

enum class Survival {
  kChance,      // Power loss: a random part of what was not synced.
  kNothing,     // Power loss: nothing that was not synced.
  kEverything,  // kill -9: the operating system lives on, and what was not synced stays so.
};

struct CrashOptions {
  Survival unsynced = Survival::kChance;
  bool stale_growth = true;                // Old pages may show up in room that was added and not synced.
  std::optional<std::uint64_t> seed = {};  // Otherwise the disk's own sequence goes on.
};

struct OperationInfo {
  std::uint64_t index = 0;  // From 0, over everything but reads.
  Operation operation = Operation::kWrite;
  std::string_view path;  // As it was given.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

class SimulatedDisk final : public platform::Disk {
 public:
  explicit SimulatedDisk(std::uint64_t seed);
  ~SimulatedDisk() override;

  Result<std::unique_ptr<platform::File>> open(const std::string& path, platform::OpenMode mode) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<bool> exists(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::unique_ptr<platform::DirectoryLock>> lock(const std::string& directory) override;

  // Files that are open answer kIoError from now on, locks are free; the disk can be used again at once.
  void crash(const CrashOptions& options = {});
  // Every operation answers kIoError until crash(): for a process that must not notice its death too late.
  void halt();

  // An independent copy, synced and unsynced state and all, without open files, locks, planned faults and hook. Cheap:
  // pages are shared until one side writes. The two may be used in different threads.
  std::unique_ptr<SimulatedDisk> clone() const;

  // Called before each operation except reads, which has had no effect yet. May use the disk: clone(), crash(), halt().
  using Hook = std::function<void(const OperationInfo&)>;
  void on_operation(Hook hook);
  std::uint64_t operation_count() const;  // Everything but reads.
  std::uint64_t operation_count(Operation operation) const;

  void plan(const PlannedFault& fault);
  std::uint64_t faults_fired() const;
  std::uint64_t faults_outstanding() const;  // Not zero at the end: the test did not test what it planned to.

  // allocate() is kUnsupported from now on, as on some file systems.
  void refuse_allocate();

  // In whole pages. May be set below what is used: then there is no room until some is freed.
  void set_capacity(std::uint64_t bytes);
  std::uint64_t used_bytes() const;

  // The test's own hands: no operation is counted, and a change is on the medium at once. The file must exist.
  std::string contents(const std::string& path) const;
  std::string durable_contents(const std::string& path) const;  // Of the synced part. Its name may not be durable.
  void overwrite(const std::string& path, std::uint64_t offset, std::string_view bytes);
  void flip_bit(const std::string& path, std::uint64_t offset, unsigned bit);
  void truncate(const std::string& path, std::uint64_t size);
  std::vector<std::string> files() const;  // Every path, sorted, each beginning with a slash.
  // Of all that would be there if the power went and took everything that was not synced.
  std::uint64_t fingerprint() const;

 private:
  struct State;
  class OpenFile;
  class HeldLock;
  explicit SimulatedDisk(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // Shared with the open files, which may outlive the disk.
};

}  // namespace bide::support
