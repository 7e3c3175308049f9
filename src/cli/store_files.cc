#include "cli/store_files.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/quote.h"
#include "core/time_text.h"
#include "engine/backup.h"
#include "engine/check/check_store.h"
#include "engine/engine.h"
#include "platform/disk.h"

namespace bide::cli {

namespace {

namespace fs = std::filesystem;
using engine::check::Finding;
using engine::check::StoreReport;

constexpr std::uint64_t kStep = 4ull << 20;  // Bytes between two updates of the progress bar.

// Of all files in it and below.
std::uint64_t bytes_in(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (auto each = fs::recursive_directory_iterator(directory, error);
       !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    std::error_code ignored;
    if (each->is_regular_file(ignored)) bytes += each->file_size(ignored);
  }
  return bytes;
}

// The real disk, with a progress bar that is full when as many bytes have been read as the directory holds.
class ProgressDisk : public platform::Disk {
 public:
  ProgressDisk(const std::string& directory, std::string_view what) : what_(what), all_(bytes_in(directory)) {
    line_.show_progress(0, all_, what_);
  }

  Result<std::unique_ptr<platform::File>> open(const std::string& path, platform::OpenMode mode) override {
    auto file = real_.open(path, mode);
    if (!file) return file;
    return std::unique_ptr<platform::File>(std::make_unique<ProgressFile>(std::move(*file), *this));
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
  class ProgressFile : public platform::File {
   public:
    ProgressFile(std::unique_ptr<platform::File> real, ProgressDisk& disk) : real_(std::move(real)), disk_(disk) {}

    Status write(std::uint64_t offset, std::string_view bytes) override { return real_->write(offset, bytes); }
    Result<std::size_t> read(std::uint64_t offset, char* into, std::size_t size) override {
      auto got = real_->read(offset, into, size);
      if (got) disk_.note(*got);
      return got;
    }
    Status sync() override { return real_->sync(); }
    Status allocate(std::uint64_t offset, std::uint64_t size) override { return real_->allocate(offset, size); }
    Status truncate(std::uint64_t size) override { return real_->truncate(size); }
    Result<std::uint64_t> size() override { return real_->size(); }

   private:
    const std::unique_ptr<platform::File> real_;
    ProgressDisk& disk_;
  };

  void note(std::uint64_t bytes) {
    read_ += bytes;
    if (read_ - shown_ < kStep) return;
    shown_ = read_;
    line_.show_progress(read_, all_, what_);
  }

  platform::Disk& real_ = platform::real_disk();
  const std::string what_;
  const std::uint64_t all_;
  std::uint64_t read_ = 0;
  std::uint64_t shown_ = 0;
  StatusLine line_;
};

StoreReport require_sound(const std::string& directory) {
  StoreReport report = check_directory(directory);
  if (!report.damaged()) return report;
  throw Failure{kDamagedData, core::quoted(directory) +
                                  " is damaged; `bide store check` says where, `bide store repair` " +
                                  "keeps what can be read"};
}

void make_empty_directory(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_empty(path, error)) {
    throw Failure{kCannotMake,
                  core::quoted(path) + " is there and not empty; give a directory that is empty or not there"};
  }
  fs::create_directories(path, error);
  if (error) throw Failure{kCannotMake, "cannot make " + core::quoted(path) + ": " + error.message()};
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void copy_files(const fs::path& from, const fs::path& to, StoreCopy& copy, std::uint64_t all, StatusLine& line) {
  platform::Disk& disk = platform::real_disk();
  for (const std::string& name : take(disk.list(from.string()))) {
    const fs::path source = from / name;
    const fs::path target = to / name;
    if (fs::is_directory(source)) {
      take(disk.make_directory(target.string()));
      copy_files(source, target, copy, all, line);
      continue;
    }
    if (name == platform::kLockFileName || !fs::is_regular_file(source)) continue;
    std::error_code error;
    fs::copy_file(source, target, error);
    if (error) throw Failure{kInputOutput, "cannot copy " + source.string() + ": " + error.message()};
    const auto file = take(disk.open(target.string(), platform::OpenMode::kReadWrite));
    take(file->sync());
    ++copy.files;
    copy.bytes += take(file->size());
    line.show_progress(copy.bytes, all, "copying");
  }
  take(disk.sync_directory(to.string()));
}

// Only the files, whatever is in them, to a directory that is there.
StoreCopy copy_store_files(const std::string& from, const std::string& to) {
  StoreCopy copy;
  StatusLine line;
  copy_files(from, to, copy, bytes_in(from), line);
  return copy;
}

// Gone when it goes out of scope, unless it was moved away.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& directory) : path_(directory + ".repair-XXXXXX") {
    if (::mkdtemp(path_.data()) != nullptr) return;
    throw Failure{kCannotMake, "cannot make a directory beside " + core::quoted(directory)};
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string default_name(const std::string& directory) {
  std::string time = core::format_time(now());
  std::erase_if(time, [](char c) { return c == '-' || c == ':' || c == '.'; });
  return directory + ".damaged-" + time;
}

void rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return;
  throw Failure{kInputOutput, "cannot rename " + core::quoted(from) + " to " + core::quoted(to) + ": " + error.message()};
}

void swap_in(const std::string& directory, const std::string& repaired, const std::string& keep_as) {
  rename(directory, keep_as);
  try {
    rename(repaired, directory);
  } catch (const Failure&) {
    rename(keep_as, directory);
    throw;
  }
  const std::string parent = fs::path(directory).parent_path().string();
  take(platform::real_disk().sync_directory(parent.empty() ? "." : parent));
}

// A store of a service stays one of that service, also when root repairs it.
void give_same_owner(const std::string& from, const std::string& to) {
  struct stat owner {};
  if (::stat(from.c_str(), &owner) != 0) return;
  ::chmod(to.c_str(), owner.st_mode & 07777);
  std::vector<std::string> paths = {to};
  std::error_code error;
  for (auto each = fs::recursive_directory_iterator(to, error); !error && each != fs::recursive_directory_iterator();
       each.increment(error)) {
    paths.push_back(each->path().string());
  }
  for (const std::string& path : paths) {
    if (::lchown(path.c_str(), owner.st_uid, owner.st_gid) == 0) continue;
    throw Failure{kNotPermitted,
                  "cannot give the repaired store to the owner of the damaged one; run it as that user or as root"};
  }
}

// The engine's own word, which counts in the end.
void require_opens(const std::string& directory) {
  engine::EngineOptions options;
  options.directory = directory;
  (void)take(engine::Engine::open(options));
}

}  // namespace

StoreReport check_directory(const std::string& directory) {
  ProgressDisk disk(directory, "checking");
  return take(engine::check::check_store(disk, directory));
}

namespace {

void show(StatusLine& line, const BackupInfo& info) {
  const bool checks = info.state == BackupState::kChecking;
  line.show_progress(checks ? info.checked_bytes : info.copied_bytes + info.linked_bytes, info.bytes,
                     checks ? "checking" : "copying");
}

// What is there already does not go away by itself.
[[noreturn]] void fail_backup(const Error& error) {
  if (error.code != ErrorCode::kAlreadyExists) fail(error);
  throw Failure{kCannotMake, error.message, std::string(to_string(error.code))};
}

// By the process that has it open.
BackupInfo back_up_open_store(const std::string& url, const std::string& to) {
  constexpr std::chrono::milliseconds kLook{50};
  const Client client = open_client(url, Missing::kRefuse);
  Inspector& inspector = client.inspector();
  const Status begun = wait<void>([&](auto done) { inspector.backup(to, std::move(done)); });
  if (!begun) fail_backup(begun.error());
  StatusLine line;
  for (;; std::this_thread::sleep_for(kLook)) {
    BackupInfo info = ask<BackupInfo>([&](auto done) { inspector.backup_info(std::move(done)); });
    if (info.state == BackupState::kDone) return info;
    if (info.state == BackupState::kFailed) fail_backup({info.error_code, info.error});
    if (info.state == BackupState::kNone) {
      fail({ErrorCode::kUnavailable, "the process that made the backup has ended before it was whole"});
    }
    show(line, info);
  }
}

}  // namespace

BackupInfo back_up_store(const std::string& from, const std::string& to) {
  if (from.starts_with("http:") || from.starts_with("https:") || from.starts_with("http+unix:")) {
    return back_up_open_store(from, to);
  }
  const std::string directory = without_slash(from);
  // Held to the end: nobody opens the store while it is copied.
  const auto lock = platform::share_directory(directory);
  if (!lock && lock.error().code == ErrorCode::kBusy) return back_up_open_store(url_of_directory(directory), to);
  if (!lock) fail(lock.error());
  const engine::BackupPlan plan = take(engine::plan_backup(directory));
  if (plan.files.empty()) throw Failure{kNotThere, "there is no store in " + core::quoted(directory)};
  std::error_code error;
  const std::string target = fs::absolute(to, error).string();
  if (Status free = engine::check_backup_target(directory, target); !free) fail_backup(free.error());
  StatusLine line;
  return take(engine::write_backup(directory, plan, {.target = target},
                                   {.progress = [&](const BackupInfo& info) { show(line, info); }}));
}

StoreCopy copy_store(const std::string& from, const std::string& to) {
  const StoreReport original = require_sound(from);
  // Held to the end: nobody opens the store while it is copied.
  const auto lock = take(platform::share_directory(from));
  make_empty_directory(to);
  // Under another name until it is whole: a part of a journal looks like one whose end was torn off.
  const std::string unfinished = without_slash(to) + ".unfinished";
  make_empty_directory(unfinished);
  StoreCopy copy = copy_store_files(from, unfinished);
  const StoreReport made = require_sound(unfinished);
  if (made.records != original.records) throw Failure{kInputOutput, "the copy differs from the original"};
  std::error_code error;
  fs::rename(unfinished, to, error);
  if (error) {
    throw Failure{kCannotMake, "the copy is in " + core::quoted(unfinished) + " and cannot be renamed to " + core::quoted(to) + ": " +
                                   error.message()};
  }
  take(platform::real_disk().sync_directory(fs::absolute(without_slash(to)).parent_path().string()));
  copy.live_jobs = made.waiting + made.running + made.dead;
  return copy;
}

StoreRepair repair_directory(const std::string& given, const RepairOptions& options) {
  const std::string directory = without_slash(given);
  StoreRepair out;
  out.checked = check_directory(directory);
  if (!out.checked.damaged()) return out;
  out.needed = true;
  // Held to the end: nobody opens the store meanwhile.
  const auto lock = take(platform::share_directory(directory));
  out.kept_as = options.keep_as.empty() ? default_name(directory) : without_slash(options.keep_as);
  std::error_code error;
  if (fs::exists(out.kept_as, error)) throw Failure{kCannotMake, core::quoted(out.kept_as) + " is there already"};
  const TemporaryDirectory copy(directory);
  copy_store_files(directory, copy.path());
  {
    ProgressDisk disk(directory, "repairing");
    out.report = take(engine::check::repair_store(disk, copy.path(), now().time_since_epoch().count()));
  }
  out.checked = check_directory(copy.path());
  if (out.checked.damaged()) {
    const auto& findings = out.checked.findings;
    const auto first = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.kind == Finding::Kind::kDamage;
    });
    throw Failure{kDamagedData, "the store cannot be repaired; it is as it was, and a backup is the way back (" +
                                    first->file + ", offset " + std::to_string(first->offset) + ": " + first->text +
                                    ")"};
  }
  require_opens(copy.path());
  if (options.dry_run) {
    out.kept_as.clear();
  } else {
    give_same_owner(directory, copy.path());
    swap_in(directory, copy.path(), out.kept_as);
  }
  return out;
}

}  // namespace bide::cli
