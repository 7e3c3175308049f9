#include "cli/store_repair.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/reading_progress.h"
#include "cli/say.h"
#include "cli/store_copy.h"
#include "cli/store_report_text.h"
#include "cli/terminal.h"
#include "core/quote.h"
#include "core/time_text.h"
#include "engine/check/check_store.h"
#include "engine/engine.h"
#include "platform/directory_lock.h"
#include "platform/disk.h"

namespace bide::cli {

namespace {

namespace fs = std::filesystem;
using engine::check::Loss;

constexpr std::size_t kMostShown = 50;

// Without a slash at its end.
std::string trimmed(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}

// Gone when it goes out of scope, unless it was moved away.
class Workplace {
 public:
  explicit Workplace(const std::string& directory) : path_(directory + ".repair-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Failure{kCannotMake, "cannot make a directory beside " + core::quoted(directory)};
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
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
  if (error)
    throw Failure{kInputOutput,
                  "cannot rename " + core::quoted(from) + " to " + core::quoted(to) + ": " + error.message()};
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

JsonArray ids_json(const std::vector<JobId>& ids) {
  JsonArray json;
  for (const JobId& id : ids) json.add(id.to_string());
  return json;
}

std::string ids_text(const char* what, const std::vector<JobId>& ids) {
  if (ids.empty()) return "";
  std::string text = std::to_string(ids.size()) + (ids.size() == 1 ? " job " : " jobs ") + what + ":\n";
  for (std::size_t i = 0; i < std::min(ids.size(), kMostShown); ++i) text += "  " + ids[i].to_string() + "\n";
  return text + (ids.size() > kMostShown ? "  ... (--json has them all)\n" : "");
}

}  // namespace

StoreRepair repair(const std::string& given, const RepairOptions& options) {
  const std::string directory = trimmed(given);
  const auto check = [](const std::string& where) {
    ReadingDisk disk(where, "checking");
    return take(engine::check::check_store(disk, where));
  };
  StoreRepair out;
  out.checked = check(directory);
  if (!out.checked.damaged()) return out;
  out.needed = true;
  // Held to the end: nobody opens the store meanwhile.
  const auto lock = take(platform::share_directory(directory));
  out.kept_as = options.keep_as.empty() ? default_name(directory) : trimmed(options.keep_as);
  std::error_code error;
  if (fs::exists(out.kept_as, error)) throw Failure{kCannotMake, core::quoted(out.kept_as) + " is there already"};
  const Workplace workplace(directory);
  copy_store_files(directory, workplace.path());
  {
    ReadingDisk disk(directory, "repairing");
    out.report = take(engine::check::repair_store(disk, workplace.path(), now().time_since_epoch().count()));
  }
  out.checked = check(workplace.path());
  if (out.checked.damaged()) {
    const auto& findings = out.checked.findings;
    const auto first = std::find_if(findings.begin(), findings.end(), [](const engine::check::Finding& finding) {
      return finding.kind == engine::check::Finding::Kind::kDamage;
    });
    throw Failure{kDamagedData, "the store cannot be repaired; it is as it was, and a backup is the way back (" +
                                    first->file + ", offset " + std::to_string(first->offset) + ": " + first->text +
                                    ")"};
  }
  require_opens(workplace.path());
  if (options.dry_run) {
    out.kept_as.clear();
  } else {
    give_same_owner(directory, workplace.path());
    swap_in(directory, workplace.path(), out.kept_as);
  }
  return out;
}

JsonObject to_json(const StoreRepair& repair) {
  JsonArray losses;
  for (const Loss& loss : repair.report.losses) {
    losses.add(JsonObject()
                   .add("file", loss.file)
                   .add("offset", loss.offset)
                   .add("bytes", loss.bytes)
                   .add("text", loss.text)
                   .add("records_after", loss.records_after));
  }
  JsonObject json;
  json.add("needed", repair.needed).add("lost", losses);
  json.add("records_kept", repair.report.records_kept).add("records_dropped", repair.report.records_dropped);
  json.add("jobs_removed", ids_json(repair.report.jobs_removed));
  json.add("jobs_finished", ids_json(repair.report.jobs_finished));
  json.add("results_lost", ids_json(repair.report.results_lost));
  json.add("jobs_begun_anew", ids_json(repair.report.jobs_begun_anew));
  if (repair.kept_as.empty()) {
    json.add_null("kept_as");
  } else {
    json.add("kept_as", repair.kept_as);
  }
  return json.add("store", to_json(repair.checked));
}

std::string repair_text(const StoreRepair& repair, bool dry_run) {
  if (!repair.needed) return "nothing to repair: no damage\n";
  const engine::check::RepairReport& report = repair.report;
  std::string text;
  std::size_t shown = 0;
  for (const Loss& loss : report.losses) {
    if (++shown > kMostShown) break;
    text += styled(Style::kRed, "lost") + " " + for_people(loss.file) + ", offset " + std::to_string(loss.offset) +
            ", " + std::to_string(loss.bytes) + " bytes: " + for_people(loss.text) + "; " +
            std::to_string(loss.records_after) + " records could be read after it\n";
  }
  if (shown > kMostShown)
    text += "... and " + std::to_string(report.losses.size() - kMostShown) + " more (--json has them all)\n";
  text += std::to_string(report.records_kept) + " records were read, " + std::to_string(report.records_dropped) +
          " of them dropped because they speak of jobs that are lost\n";
  text += ids_text("whose body is lost, and which are removed", report.jobs_removed);
  text += ids_text("which are done, though how they began is lost; not run again", report.jobs_finished);
  text += ids_text("which are done and forgotten now, since what they came to is lost", report.results_lost);
  text += ids_text("whose last change is lost, and which begin anew", report.jobs_begun_anew);
  text += std::to_string(repair.checked.waiting + repair.checked.running) + " jobs to be run and " +
          std::to_string(repair.checked.dead) + " dead ones are left\n";
  text += dry_run ? "nothing was changed\n"
                  : "repaired, checked and opened; the damaged store is kept as " + for_people(repair.kept_as) + "\n";
  return text;
}

}  // namespace bide::cli
