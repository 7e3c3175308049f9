// bide store: a data directory as such. But for a backup, it must not be open in any other process.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "brokers/open_broker.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/output.h"
#include "cli/store_files.h"
#include "core/duration.h"
#include "engine/engine.h"

namespace bide::cli {

namespace {

using engine::check::Finding;
using engine::check::Loss;
using engine::check::RepairReport;
using engine::check::StoreReport;

constexpr std::size_t kMostShown = 50;

struct KindText {
  const char* name;
  Style style;
};

KindText text_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::kDamage: return {"damage", Style::kRed};
    case Finding::Kind::kTornTail: return {"torn_tail", Style::kYellow};
    case Finding::Kind::kNote: break;
  }
  return {"note", Style::kDim};
}

std::string number(std::uint64_t value) { return std::to_string(value); }

JsonObject report_json(const StoreReport& report) {
  JsonObject types;
  for (const auto& [type, count] : report.records_by_type) types.add(type, count);
  const JsonArray findings(report.findings, [](const Finding& finding) {
    return JsonObject()
        .add("kind", text_of(finding.kind).name)
        .add("file", finding.file)
        .add("offset", finding.offset)
        .add("text", finding.text);
  });
  JsonObject json;
  json.add("ok", !report.damaged()).add("segments", report.segments).add("batches", report.batches);
  json.add("records", report.records).add("records_by_type", types).add("journal_bytes", report.journal_bytes);
  std::optional<JsonObject> snapshot;
  if (report.snapshot_address) {
    snapshot = JsonObject().add("address", *report.snapshot_address).add("rows", report.snapshot_rows);
  }
  json.add("snapshot", snapshot);
  json.add("jobs_complete", report.jobs_complete);
  json.add("jobs", JsonObject()
                       .add("waiting", report.waiting)
                       .add("running", report.running)
                       .add("dead", report.dead)
                       .add("done_remembered", report.done_remembered)
                       .add("accepted", report.accepted)
                       .add("done", report.done)
                       .add("cancelled", report.cancelled)
                       .add("deleted", report.deleted)
                       .add("purged", report.purged)
                       .add("forgotten", report.forgotten));
  return json.add("findings", findings);
}

std::string report_text(const StoreReport& report) {
  std::string text = number(report.segments) + " segments, " + number(report.batches) + " batches, " +
                     number(report.records) + " records, " + number(report.journal_bytes) + " bytes\n";
  if (report.snapshot_address) {
    text += "snapshot of " + number(report.snapshot_rows) + " jobs at address " + number(*report.snapshot_address) + "\n";
  }
  Table types({}, {Table::Align::kLeft, Table::Align::kRight});
  for (const auto& [type, count] : report.records_by_type) types.row({"  " + type, number(count)});
  text += types.text();
  if (!report.jobs_complete) text += "jobs, as far as the journal could be understood:\n";
  text += number(report.accepted) + " jobs accepted = " + number(report.done) + " done + " +
          number(report.cancelled + report.deleted + report.purged + report.forgotten) + " removed + " +
          number(report.waiting) + " waiting + " + number(report.running) + " running + " + number(report.dead) +
          " dead\n";
  for (const Finding& finding : report.findings) {
    const KindText kind = text_of(finding.kind);
    text += styled(kind.style, kind.name) + ": ";
    if (!finding.file.empty()) text += for_people(finding.file) + ", offset " + number(finding.offset) + ": ";
    text += for_people(finding.text) + "\n";
  }
  if (!report.damaged()) text += styled(Style::kGreen, "no damage") + "\n";
  return text;
}

JsonObject repair_json(const StoreRepair& repair) {
  const JsonArray losses(repair.report.losses, [](const Loss& loss) {
    return JsonObject()
        .add("file", loss.file)
        .add("offset", loss.offset)
        .add("bytes", loss.bytes)
        .add("text", loss.text)
        .add("records_after", loss.records_after);
  });
  JsonObject json;
  json.add("needed", repair.needed).add("lost", losses);
  json.add("records_kept", repair.report.records_kept).add("records_dropped", repair.report.records_dropped);
  json.add("jobs_removed", JsonArray(repair.report.jobs_removed));
  json.add("jobs_finished", JsonArray(repair.report.jobs_finished));
  json.add("results_lost", JsonArray(repair.report.results_lost));
  json.add("jobs_begun_anew", JsonArray(repair.report.jobs_begun_anew));
  json.add("kept_as", repair.kept_as.empty() ? std::nullopt : std::optional(repair.kept_as));
  return json.add("store", report_json(repair.checked));
}

std::string ids_text(const char* what, const std::vector<JobId>& ids) {
  if (ids.empty()) return "";
  std::string text = number(ids.size()) + (ids.size() == 1 ? " job " : " jobs ") + what + ":\n";
  for (std::size_t i = 0; i < std::min(ids.size(), kMostShown); ++i) text += "  " + ids[i].to_string() + "\n";
  return text + (ids.size() > kMostShown ? "  ... (--json has them all)\n" : "");
}

std::string repair_text(const StoreRepair& repair, bool dry_run) {
  if (!repair.needed) return "nothing to repair: no damage\n";
  const RepairReport& report = repair.report;
  std::string text;
  std::size_t shown = 0;
  for (const Loss& loss : report.losses) {
    if (++shown > kMostShown) break;
    text += styled(Style::kRed, "lost") + " " + for_people(loss.file) + ", offset " + number(loss.offset) +
            ", " + number(loss.bytes) + " bytes: " + for_people(loss.text) + "; " +
            number(loss.records_after) + " records could be read after it\n";
  }
  if (shown > kMostShown) {
    text += "... and " + number(report.losses.size() - kMostShown) + " more (--json has them all)\n";
  }
  text += number(report.records_kept) + " records were read, " + number(report.records_dropped) +
          " of them dropped because they speak of jobs that are lost\n";
  text += ids_text("whose body is lost, and which are removed", report.jobs_removed);
  text += ids_text("which are done, though how they began is lost; not run again", report.jobs_finished);
  text += ids_text("which are done and forgotten now, since what they came to is lost", report.results_lost);
  text += ids_text("whose last change is lost, and which begin anew", report.jobs_begun_anew);
  text += number(repair.checked.waiting + repair.checked.running) + " jobs to be run and " +
          number(repair.checked.dead) + " dead ones are left\n";
  text += dry_run ? "nothing was changed\n"
                  : "repaired, checked and opened; the damaged store is kept as " + for_people(repair.kept_as) + "\n";
  return text;
}

// The engine lets one segment's worth of garbage be, so that it need not copy all the time. Here somebody asked for it.
constexpr std::uint64_t kSmallSegment = 1ull << 20;

std::string reason(const engine::Engine::DiskUse& use, std::uint64_t done, Milliseconds retention) {
  std::string text =
      use.journal_bytes <= use.live_bytes + kSmallSegment
          ? "the current segment is kept as it is; at most 1 MiB of the journal is not needed"
          : "the rest is room written ahead, and garbage among what is needed, at most half of each file";
  if (done > 0) {
    text += "; " + number(done) +
            " jobs that are done are remembered for " + core::format_duration(retention) + " (result_retention), with their results";
  }
  return text;
}

int check(const Invocation& call) {
  const StoreReport report = check_directory(call.argument(0));
  const std::string advice = report.damaged() ? "`bide store repair` keeps what can be read\n" : "";
  print(call, report_json(report), report_text(report) + advice);
  return report.damaged() ? kDamagedData : kOk;
}

int repair(const Invocation& call) {
  const bool dry_run = call.has(kDryRunFlag.name);
  const StoreRepair done =
      repair_directory(call.argument(0), {.dry_run = dry_run, .keep_as = call.value_or("--keep-as", "")});
  print(call, repair_json(done), repair_text(done, dry_run));
  return kOk;
}

int compact(const Invocation& call) {
  const std::string store = call.argument(0);
  engine::EngineOptions options;
  options.directory = store;
  options.done_bytes = 0;
  if (store.starts_with("bide:")) options = take(brokers::parse_engine_url(store));
  // A directory that is not there is a typing mistake; opening it would make one.
  (void)check_directory(options.directory);
  StatusLine status;
  options.segment_bytes = kSmallSegment;
  options.reserve_bytes = 0;
  const auto engine = take(engine::Engine::open(options));
  const std::uint64_t before = engine->disk_use().journal_bytes;
  status.show("compacting " + number(before) + " bytes");
  engine->tidy_up();
  const engine::Engine::DiskUse after = engine->disk_use();
  const auto audit = wait<AuditReport>([&](auto done) { engine->audit(std::move(done)); });
  status.clear();
  std::string why_not_less;
  if (after.journal_bytes + kSmallSegment / 4 >= before || after.journal_bytes >= 2 * after.live_bytes + kSmallSegment) {
    const auto done = audit ? audit->details.find("done_remembered") : decltype(audit->details.find("")){};
    why_not_less = reason(after, audit && done != audit->details.end() ? done->second : 0, options.result_retention);
  }
  print(call,
        JsonObject()
            .add("before_bytes", before)
            .add("after_bytes", after.journal_bytes)
            .add("live_bytes", after.live_bytes)
            .add("why_not_less", why_not_less),
        number(before) + " bytes before, " + number(after.journal_bytes) + " after, of which " +
            number(after.live_bytes) + " are needed\n" + (why_not_less.empty() ? "" : why_not_less + "\n"));
  return kOk;
}

int restore(const Invocation& call) {
  const StoreCopy copied = copy_store(call.argument(0), call.argument(1));
  print(call,
        JsonObject()
            .add("to", call.argument(1))
            .add("files", copied.files)
            .add("bytes", copied.bytes)
            .add("live_jobs", copied.live_jobs),
        "restored " + number(copied.files) + " files, " + number(copied.bytes) + " bytes, " + number(copied.live_jobs) +
            " live jobs; the copy was checked\n");
  return kOk;
}

int backup(const Invocation& call) {
  const BackupInfo made = back_up_store(call.argument(0), call.argument(1));
  print(call,
        JsonObject()
            .add("to", call.argument(1))
            .add("files", made.files)
            .add("bytes", made.bytes)
            .add("copied_bytes", made.copied_bytes)
            .add("linked_bytes", made.linked_bytes)
            .add("live_jobs", made.live_jobs),
        "saved " + number(made.files) + " files, " + number(made.bytes) + " bytes, " + number(made.live_jobs) +
            " live jobs; " + number(made.copied_bytes) + " bytes were copied, the others are there by another name; the copy was checked\n");
  return kOk;
}

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
       .run = repair},
      {.path = "store compact",
       .summary = "Give back the disk space of jobs that are done, now",
       .details =
           "What done jobs came to is kept as long as they are remembered: an hour, unless the store is given with\n"
           "other settings. What they were (done_bytes) goes, unless the store is given by its URL. When little or\n"
           "nothing is given back, it says why.",
       .arguments = {{"DIR", "the data directory, or its URL with settings: 'bide:DIR?result_retention=7d'"}},
       .flags = {kJsonFlag},
       .run = compact},
      {.path = "store backup",
       .summary = "Copy a data directory, also one that is in use, and check the copy",
       .details =
           "The process that has the directory open makes the copy, beside its work; when nobody has, this command does.\n"
           "Made again to the same place, only what is new is copied, and the older backup is replaced when the new one is\n"
           "whole. Until then it is TO.unfinished. On the same file system most files are not copied but get a second name.",
       .arguments = {{"DIR", "the data directory, or the URL of a server"},
                     {"TO", "a directory that is empty, not there, or an older backup; of a server: a name"}},
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
