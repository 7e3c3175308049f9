#include "cli/store_copy.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "cli/failure.h"
#include "cli/reading_progress.h"
#include "cli/terminal.h"
#include "core/quote.h"
#include "engine/check/check_store.h"
#include "platform/directory_lock.h"
#include "platform/disk.h"

namespace bide::cli {

namespace {

namespace fs = std::filesystem;

engine::check::StoreReport checked(const std::string& directory) {
  ReadingDisk disk(directory, "checking");
  engine::check::StoreReport report = take(engine::check::check_store(disk, directory));
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

struct Progress {
  std::uint64_t bytes = 0;  // To be copied.
  StatusLine line = {};

  void show(const StoreCopy& copy) {
    const double all = static_cast<double>(std::max<std::uint64_t>(1, bytes));
    line.show(progress_bar(static_cast<double>(copy.bytes) / all) + " copying");
  }
};

void copy_files(const fs::path& from, const fs::path& to, StoreCopy& copy, Progress& progress) {
  platform::Disk& disk = platform::real_disk();
  for (const std::string& name : take(disk.list(from.string()))) {
    const fs::path source = from / name;
    const fs::path target = to / name;
    if (fs::is_directory(source)) {
      take(disk.make_directory(target.string()));
      copy_files(source, target, copy, progress);
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
    progress.show(copy);
  }
  take(disk.sync_directory(to.string()));
}

}  // namespace

StoreCopy copy_store_files(const std::string& from, const std::string& to) {
  StoreCopy copy;
  Progress progress{.bytes = bytes_in(from)};
  copy_files(from, to, copy, progress);
  return copy;
}

StoreCopy copy_store(const std::string& from, const std::string& to) {
  const engine::check::StoreReport original = checked(from);
  // Held to the end: nobody opens the store while it is copied.
  const auto lock = take(platform::share_directory(from));
  make_empty_directory(to);
  // Under another name until it is whole: a part of a journal looks like one whose end was torn off.
  const std::string unfinished = without_slash(to) + ".unfinished";
  make_empty_directory(unfinished);
  StoreCopy copy = copy_store_files(from, unfinished);
  const engine::check::StoreReport made = checked(unfinished);
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

}  // namespace bide::cli
