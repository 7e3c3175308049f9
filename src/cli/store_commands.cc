// bide store: a data directory as such. It must not be open in any other process.

#include <cinttypes>
#include <cstdio>
#include <string>

#include "cli/command_groups.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/json.h"
#include "cli/store_copy.h"
#include "cli/store_report_text.h"
#include "cli/terminal.h"
#include "engine/check/check_store.h"
#include "engine/engine.h"
#include "platform/disk.h"

namespace bide::cli {

namespace {

int check(const Invocation& call) {
  const engine::check::StoreReport report = take(engine::check::check_store(platform::real_disk(), call.argument(0)));
  std::fputs(call.json() ? (to_json(report).text() + "\n").c_str() : report_text(report).c_str(), stdout);
  return report.damaged() ? kDamagedData : kOk;
}

int compact(const Invocation& call) {
  const std::string directory = call.argument(0);
  // Not made when it is not there: that would be a typing mistake.
  (void)take(engine::check::check_store(platform::real_disk(), directory));
  engine::EngineOptions options;
  options.directory = directory;
  const auto engine = take(engine::Engine::open(options));
  const std::uint64_t before = engine->disk_use().journal_bytes;
  engine->tidy_up();
  const engine::Engine::DiskUse after = engine->disk_use();
  if (call.json()) {
    std::puts(JsonObject()
                  .add("before_bytes", before)
                  .add("after_bytes", after.journal_bytes)
                  .add("live_bytes", after.live_bytes)
                  .text()
                  .c_str());
  } else {
    std::printf("%" PRIu64 " bytes before, %" PRIu64 " after, of which %" PRIu64 " are needed\n", before,
                after.journal_bytes, after.live_bytes);
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
       .details = "Nothing is changed. Exits 65 when something that was confirmed is damaged; a torn tail, which is what\n"
                  "a power failure leaves, is reported and no damage.",
       .arguments = {{"DIR", "the data directory; nobody may have it open"}},
       .flags = {kJsonFlag},
       .run = check},
      {.path = "store compact",
       .summary = "Give back the disk space of jobs that are done, now",
       .arguments = {{"DIR", "the data directory"}},
       .flags = {kJsonFlag},
       .run = compact},
      {.path = "store backup",
       .summary = "Copy a data directory, and check the copy",
       .arguments = {{"DIR", "the data directory; nobody may have it open"}, {"TO", "a directory that is empty or not there"}},
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
