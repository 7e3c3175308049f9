// bide store: a data directory as such. It must not be open in any other process.

#include <cinttypes>
#include <cstdio>
#include <string>

#include "cli/command_groups.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/job_selection.h"
#include "cli/json.h"
#include "cli/reading_progress.h"
#include "cli/say.h"
#include "cli/store_compact.h"
#include "cli/store_copy.h"
#include "cli/store_repair.h"
#include "cli/store_report_text.h"
#include "cli/terminal.h"
#include "engine/check/check_store.h"

namespace bide::cli {

namespace {

int check(const Invocation& call) {
  const engine::check::StoreReport report = [&] {
    ReadingDisk disk(call.argument(0), "checking");
    return take(engine::check::check_store(disk, call.argument(0)));
  }();
  std::fputs(call.json() ? (to_json(report).text() + "\n").c_str() : report_text(report).c_str(), stdout);
  if (!report.damaged()) return kOk;
  if (!call.json()) say("`bide store repair` keeps what can be read");
  return kDamagedData;
}

int repair_store(const Invocation& call) {
  const bool dry_run = call.has(kDryRunFlag.name);
  const StoreRepair done = repair(call.argument(0), {.dry_run = dry_run, .keep_as = call.value_or("--keep-as", "")});
  std::fputs(call.json() ? (to_json(done).text() + "\n").c_str() : repair_text(done, dry_run).c_str(), stdout);
  return kOk;
}

int compact(const Invocation& call) {
  const CompactReport report = compact_store(call.argument(0));
  if (call.json()) {
    std::puts(JsonObject()
                  .add("before_bytes", report.before_bytes)
                  .add("after_bytes", report.after_bytes)
                  .add("live_bytes", report.live_bytes)
                  .add("why_not_less", report.why_not_less)
                  .text()
                  .c_str());
  } else {
    say(std::to_string(report.before_bytes) + " bytes before, " + std::to_string(report.after_bytes) +
        " after, of which " + std::to_string(report.live_bytes) + " are needed");
    if (!report.why_not_less.empty()) say(report.why_not_less);
  }
  return kOk;
}

int copy(const Invocation& call, const char* verb) {
  const StoreCopy copied = copy_store(call.argument(0), call.argument(1));
  if (call.json()) {
    std::puts(JsonObject()
                  .add("to", call.argument(1))
                  .add("files", copied.files)
                  .add("bytes", copied.bytes)
                  .add("live_jobs", copied.live_jobs)
                  .text()
                  .c_str());
  } else {
    std::printf("%s %" PRIu64 " files, %" PRIu64 " bytes, %" PRIu64 " live jobs; the copy was checked\n", verb,
                copied.files, copied.bytes, copied.live_jobs);
  }
  return kOk;
}

int backup(const Invocation& call) { return copy(call, "saved"); }
int restore(const Invocation& call) { return copy(call, "restored"); }

}  // namespace

std::vector<Command> store_commands() {
  return {
      {.path = "store check",
       .summary = "Read a data directory with a reader of its own, and say what is in it and what is wrong",
       .details =
           "Nothing is changed. Exits 65 when something that was confirmed is damaged; a torn tail, which is what\n"
           "a power failure leaves, is reported and no damage.",
       .arguments = {{"DIR", "the data directory; nobody may have it open"}},
       .flags = {kJsonFlag},
       .run = check},
      {.path = "store repair",
       .summary = "Make a store that opens out of one that is damaged, keeping what can be read",
       .details =
           "A copy is repaired, checked and opened; then the two change places, and the damaged store is kept as\n"
           "DIR.damaged-TIME. So there must be room for a copy. It says what was lost, by file and offset, and how\n"
           "many records could be read after it. Where a record is lost the job may be gone, or be run again.",
       .arguments = {{"DIR", "the data directory; nobody may have it open"}},
       .flags = {{"--keep-as", "PATH", "where the damaged store goes; default: DIR.damaged-TIME"},
                 {kDryRunFlag.name, "", "only say what would be lost"},
                 kJsonFlag},
       .run = repair_store},
      {.path = "store compact",
       .summary = "Give back the disk space of jobs that are done, now",
       .details =
           "What done jobs leave for those who ask about them is kept as long as they are remembered: an hour, unless\n"
           "the store is given with other settings. When little or nothing is given back, it says why.",
       .arguments = {{"DIR", "the data directory, or its URL with settings: 'bide:DIR?result_retention=7d'"}},
       .flags = {kJsonFlag},
       .run = compact},
      {.path = "store backup",
       .summary = "Copy a data directory, and check the copy",
       .arguments = {{"DIR", "the data directory; nobody may have it open"},
                     {"TO", "a directory that is empty or not there"}},
       .flags = {kJsonFlag},
       .run = backup},
      {.path = "store restore",
       .summary = "Copy a backup to where it shall be used, and check it",
       .arguments = {{"FROM", "the backup"}, {"DIR", "the data directory to be; empty or not there"}},
       .flags = {kJsonFlag},
       .run = restore},
  };
}

}  // namespace bide::cli
