#include "engine/backup.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/quote.h"
#include "engine/check/check_store.h"
#include "engine/check/store_files.h"
#include "engine/id_block.h"
#include "engine/journal/synced_mark.h"
#include "platform/disk.h"

namespace bide::engine {

namespace {

namespace fs = std::filesystem;
using platform::OpenMode;

constexpr std::size_t kPieceBytes = 4 << 20;  // Copied and synced between two pauses.
constexpr std::size_t kProbeBytes = 64 << 10;

constexpr char kUnfinished[] = ".unfinished";
constexpr char kPrevious[] = ".previous";

Error stopped() { return {ErrorCode::kUnavailable, "the store was closed before the backup was whole"}; }

Error not_made(const std::string& what, const std::error_code& error) {
  return {error == std::errc::no_space_on_device ? ErrorCode::kDiskFull : ErrorCode::kCannotCreate,
          what + ": " + error.message()};
}

// Of a store, and never opened since it was copied.
bool is_backup(const std::string& directory) {
  platform::Disk& disk = platform::real_disk();
  const auto locked = disk.exists(directory + "/" + platform::kLockFileName);
  if (!locked || *locked) return false;
  const auto unfinished = disk.exists(directory + "/" + check::kUnfinishedBackup);
  if (unfinished && *unfinished) return true;
  const auto files = check::list_store(disk, directory);
  return files && !(files->segments.empty() && files->snapshots.empty());
}

Result<bool> is_empty_or_absent(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return true;
  const bool empty = fs::is_directory(path, error) && fs::is_empty(path, error);
  if (error) return not_made("cannot look into " + core::quoted(path), error);
  return empty;
}

Error foreign(const std::string& path) {
  return {ErrorCode::kAlreadyExists, core::quoted(path) + " is there, and no backup that was left as it was made; give a " +
                                         "directory that is empty or not there"};
}

Status remove_backup(const std::string& path) {
  const auto free = is_empty_or_absent(path);
  if (!free) return free.error();
  if (!*free && !is_backup(path)) return foreign(path);
  std::error_code error;
  fs::remove_all(path, error);
  return error ? Status(not_made("cannot remove " + core::quoted(path), error)) : Status();
}

Status rename(const std::string& from, const std::string& to) { return platform::real_disk().rename(from, to); }

// The real disk, with a pause after each read.
class PacedDisk final : public platform::Disk {
 public:
  using Paced = std::function<Status(std::uint64_t bytes)>;
  explicit PacedDisk(Paced paced) : paced_(std::move(paced)) {}

  Result<std::unique_ptr<platform::File>> open(const std::string& path, OpenMode mode) override {
    auto file = real_.open(path, mode);
    if (!file) return file;
    return std::unique_ptr<platform::File>(std::make_unique<PacedFile>(std::move(*file), paced_));
  }
  Result<std::vector<std::string>> list(const std::string& directory) override { return real_.list(directory); }
  Result<bool> exists(const std::string& path) override { return real_.exists(path); }
  Status rename(const std::string& from, const std::string& to) override { return real_.rename(from, to); }
  Status remove(const std::string& path) override { return real_.remove(path); }
  Status make_directory(const std::string& path) override { return real_.make_directory(path); }
  Status sync_directory(const std::string& path) override { return real_.sync_directory(path); }
  Result<std::unique_ptr<platform::DirectoryLock>> lock(const std::string& directory) override {
    return real_.lock(directory);
  }

 private:
  class PacedFile final : public platform::File {
   public:
    PacedFile(std::unique_ptr<platform::File> real, Paced& paced) : real_(std::move(real)), paced_(paced) {}

    Result<std::size_t> read(std::uint64_t offset, char* into, std::size_t size) override {
      std::size_t done = 0;
      while (done < size) {
        const auto got = real_->read(offset + done, into + done, std::min(size - done, kPieceBytes));
        if (!got) return got;
        if (*got == 0) break;
        done += *got;
        if (Status going_on = paced_(*got); !going_on) return going_on.error();
      }
      return done;
    }
    Status write(std::uint64_t offset, std::string_view bytes) override { return real_->write(offset, bytes); }
    Status sync() override { return real_->sync(); }
    Status allocate(std::uint64_t offset, std::uint64_t size) override { return real_->allocate(offset, size); }
    Status truncate(std::uint64_t size) override { return real_->truncate(size); }
    Result<std::uint64_t> size() override { return real_->size(); }

   private:
    const std::unique_ptr<platform::File> real_;
    Paced& paced_;
  };

  platform::Disk& real_ = platform::real_disk();
  Paced paced_;
};

class Writer {
 public:
  Writer(std::string directory, const BackupPlan& plan, BackupInfo info, const BackupHooks& hooks)
      : store_(std::move(directory)), plan_(plan), info_(std::move(info)), hooks_(hooks) {}

  Result<BackupInfo> run() {
    if (Status begun = begin(); !begun) return begun.error();
    for (const StoreFile& file : plan_.files) {
      if (Status taken = take(file); !taken) return taken.error();
      tell();
    }
    if (Status taken = take_others(); !taken) return taken.error();
    if (Status ended = end_copy(); !ended) return ended.error();
    if (Status checked = check(); !checked) return checked.error();
    if (Status swapped = swap_in(); !swapped) return swapped.error();
    info_.state = BackupState::kDone;
    return info_;
  }

 private:
  void tell() const {
    if (hooks_.progress) hooks_.progress(info_);
  }

  Status pause(std::chrono::steady_clock::time_point begun) const {
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
    return !hooks_.pause || hooks_.pause(took) ? Status() : Status(stopped());
  }

  Status begin() {
    info_.files = plan_.files.size();
    for (const StoreFile& file : plan_.files) info_.bytes += file.bytes;
    info_.state = BackupState::kCopying;
    tell();
    // A crash between the two renames of swap_in() left the old one under this name.
    const auto free = is_empty_or_absent(info_.target);
    if (!free) return free.error();
    std::error_code error;
    if (*free && fs::exists(previous_, error)) {
      fs::remove(info_.target, error);
      if (Status back = rename(previous_, info_.target); !back) return back;
    }
    for (const std::string& leftover : {previous_, unfinished_}) {
      if (Status removed = remove_backup(leftover); !removed) return removed;
    }
    fs::create_directories(fs::path(info_.target).parent_path(), error);
    if (error) return not_made("cannot make the parent of " + core::quoted(info_.target), error);
    if (Status made = disk_.make_directory(unfinished_); !made) return made;
    if (Status marked = check::write_whole_file(disk_, unfinished_ + "/" + check::kUnfinishedBackup, ""); !marked) return marked;
    if (Status synced = disk_.sync_directory(unfinished_); !synced) return synced;
    for (const char* const below : {"/journal", "/ids"}) {
      if (Status made = disk_.make_directory(unfinished_ + below); !made) return made;
    }
    return {};
  }

  Status take(const StoreFile& file) {
    const std::string from = store_ + "/" + file.name;
    const std::string older = info_.target + "/" + file.name;
    const std::string to = unfinished_ + "/" + file.name;
    if (file.is_final && (link(from, to) || (is_same(from, older, file.bytes) && link(older, to)))) {
      info_.linked_bytes += file.bytes;
      // Nothing but a sync of the file itself says that its bytes will be there after a loss of power.
      auto linked = disk_.open(to, OpenMode::kReadOnly);
      return linked ? (*linked)->sync() : Status(linked.error());
    }
    return copy(from, to, file.bytes);
  }

  // What a server keeps beside the jobs: its tokens and the like. Small, and replaced as a whole.
  Status take_others() {
    static const std::set<std::string> kLeft = {platform::kLockFileName, "reserve", "clock", "socket",
                                                check::kUnfinishedSnapshot, check::kUnfinishedBackup};
    const auto names = disk_.list(store_);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      const fs::path from = store_ + "/" + name;
      const std::string to = unfinished_ + "/" + name;
      std::error_code error;
      if (kLeft.contains(name) || name.starts_with("snapshot-") || !fs::is_regular_file(from, error)) continue;
      fs::copy_file(from, to, error);  // With its permissions.
      if (error == std::errc::no_such_file_or_directory) continue;
      if (error) return not_made("cannot copy " + from.string(), error);
      auto file = disk_.open(to, OpenMode::kReadOnly);
      if (!file) return file.error();
      if (Status synced = (*file)->sync(); !synced) return synced;
      const auto bytes = (*file)->size();
      if (!bytes) return bytes.error();
      ++info_.files;
      info_.bytes += *bytes;
      info_.copied_bytes += *bytes;
    }
    return {};
  }

  static bool link(const std::string& from, const std::string& to) {
    std::error_code error;
    fs::create_hard_link(from, to, error);
    return !error;
  }

  // Two files of one name and size, and never written to again: their ends hold ids and checksums that no other store has.
  bool is_same(const std::string& file, const std::string& older, std::uint64_t bytes) const {
    std::error_code error;
    if (fs::file_size(older, error) != bytes || error) return false;
    const std::uint64_t last = bytes - std::min<std::uint64_t>(bytes, kProbeBytes);
    return probe(file, 0) == probe(older, 0) && probe(file, last) == probe(older, last);
  }
  std::string probe(const std::string& path, std::uint64_t offset) const {
    std::string bytes(kProbeBytes, '\0');
    const auto file = disk_.open(path, OpenMode::kReadOnly);
    const auto got = file ? (*file)->read(offset, bytes.data(), bytes.size()) : Result<std::size_t>(0);
    bytes.resize(got.value_or(0));
    return bytes;
  }

  Status copy(const std::string& from, const std::string& to, std::uint64_t bytes) {
    auto source = disk_.open(from, OpenMode::kReadOnly);
    if (!source) return source.error();
    auto target = disk_.open(to, OpenMode::kCreate);
    if (!target) return target.error();
    piece_.resize(kPieceBytes);
    for (std::uint64_t at = 0; at < bytes;) {
      const auto begun = std::chrono::steady_clock::now();
      const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, kPieceBytes));
      const auto got = (*source)->read(at, piece_.data(), wanted);
      if (!got) return got.error();
      if (*got < wanted) return Error{ErrorCode::kDamaged, from + " is shorter than it should be"};
      if (Status written = (*target)->write(at, std::string_view(piece_).substr(0, *got)); !written) return written;
      if (Status synced = (*target)->sync(); !synced) return synced;
      at += *got;
      info_.copied_bytes += *got;
      tell();
      if (Status going_on = pause(begun); !going_on) return going_on;
    }
    return {};
  }

  Status end_copy() {
    // A copy that is cut short later can be told from one whose end was torn.
    if (plan_.end != 0) {
      journal::SyncedMark mark(disk_, unfinished_ + "/journal");
      if (Status marked = mark.write(plan_.end); !marked) return marked;
      auto file = disk_.open(unfinished_ + "/" + check::kSyncedMarkPath, OpenMode::kReadWrite);
      if (!file) return file.error();
      if (Status synced = (*file)->sync(); !synced) return synced;
    }
    for (const char* const below : {"/journal", "/ids", ""}) {
      if (Status synced = disk_.sync_directory(unfinished_ + below); !synced) return synced;
    }
    return {};
  }

  Status check() {
    info_.state = BackupState::kChecking;
    // From one pause to the next: what is done with the bytes takes longer than reading them.
    auto begun = std::chrono::steady_clock::now();
    PacedDisk paced([&](std::uint64_t bytes) {
      info_.checked_bytes += bytes;
      tell();
      Status paused = pause(begun);
      begun = std::chrono::steady_clock::now();
      return paused;
    });
    const auto report = check::check_store(paced, unfinished_);
    if (!report) return report.error();
    for (const check::Finding& finding : report->findings) {
      if (finding.kind != check::Finding::Kind::kDamage || finding.file == check::kUnfinishedBackup) continue;
      return Error{ErrorCode::kDamaged, "the copy is damaged, so the store is too: " + finding.file + ", offset " +
                                            std::to_string(finding.offset) + ": " + finding.text +
                                            "; `bide store check` says more"};
    }
    info_.live_jobs = report->waiting + report->running + report->dead;
    return {};
  }

  Status swap_in() {
    if (Status whole = disk_.remove(unfinished_ + "/" + check::kUnfinishedBackup); !whole) return whole;
    if (Status synced = disk_.sync_directory(unfinished_); !synced) return synced;
    const auto free = is_empty_or_absent(info_.target);
    if (!free) return free.error();
    if (!*free) {
      if (Status kept = rename(info_.target, previous_); !kept) return kept;
    }
    if (Status there = rename(unfinished_, info_.target); !there) return there;
    if (Status synced = disk_.sync_directory(fs::path(info_.target).parent_path().string()); !synced) return synced;
    return remove_backup(previous_);
  }

  platform::Disk& disk_ = platform::real_disk();
  const std::string store_;
  const BackupPlan& plan_;
  BackupInfo info_;
  const BackupHooks& hooks_;
  const std::string unfinished_ = info_.target + kUnfinished;
  const std::string previous_ = info_.target + kPrevious;
  std::string piece_;
};

Result<std::uint64_t> size_of(const std::string& path) {
  auto file = platform::real_disk().open(path, OpenMode::kReadOnly);
  if (!file) return file.error();
  return (*file)->size();
}

}  // namespace

Result<BackupPlan> plan_backup(const std::string& directory) {
  platform::Disk& disk = platform::real_disk();
  const auto files = check::list_store(disk, directory);
  if (!files) return files.error();
  BackupPlan plan;
  if (!files->snapshots.empty()) plan.files.push_back({.name = files->snapshots.back()});
  for (const auto& segment : files->segments) plan.files.push_back({.name = segment.path});
  if (!files->segments.empty()) plan.files.back().is_final = false;
  const auto there = disk.exists(directory + "/ids");
  if (!there) return there.error();
  if (*there) {
    const auto names = disk.list(directory + "/ids");
    if (!names) return names.error();
    for (const std::string& name : *names) {
      if (parse_id_file_name(name)) plan.files.push_back({.name = "ids/" + name});
    }
    if (plan.files.back().name.starts_with("ids/")) plan.files.back().is_final = false;
  }
  for (StoreFile& file : plan.files) {
    const auto bytes = size_of(directory + "/" + file.name);
    if (!bytes) return bytes.error();
    file.bytes = *bytes;
  }
  if (files->synced_mark) {
    const auto mark = check::read_whole_file(disk, directory + "/" + check::kSyncedMarkPath);
    if (!mark) return mark.error();
    plan.end = check::read_synced_mark(*mark);
  }
  return plan;
}

Status check_backup_target(const std::string& directory, const std::string& target) {
  const fs::path path = fs::path(target).lexically_normal();
  if (target.empty() || !path.is_absolute() || path == path.root_path()) {
    return Error{ErrorCode::kInvalidArgument, "the target of a backup is an absolute path of a directory, not " +
                                                  core::quoted(target)};
  }
  for (const char* const suffix : {kUnfinished, kPrevious}) {
    if (!target.ends_with(suffix)) continue;
    return Error{ErrorCode::kInvalidArgument, "the target of a backup does not end in " + std::string(suffix) +
                                                  ": that is how a part of one is called"};
  }
  std::error_code error;
  const fs::path store = fs::weakly_canonical(fs::absolute(directory, error), error);
  const fs::path place = fs::weakly_canonical(path, error);
  const auto [in_store, rest] = std::mismatch(store.begin(), store.end(), place.begin(), place.end());
  if (in_store == store.end()) {
    return Error{ErrorCode::kInvalidArgument, core::quoted(target) + " is within the store: give a directory outside of it"};
  }
  const auto free = is_empty_or_absent(target);
  if (!free) return free.error();
  if (!*free && !is_backup(target)) return foreign(target);
  return {};
}

Result<BackupInfo> write_backup(const std::string& directory, const BackupPlan& plan, BackupInfo info,
                                const BackupHooks& hooks) {
  while (info.target.size() > 1 && info.target.back() == '/') info.target.pop_back();
  return Writer(directory, plan, std::move(info), hooks).run();
}

}  // namespace bide::engine
