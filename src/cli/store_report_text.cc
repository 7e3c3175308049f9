#include "cli/store_report_text.h"

#include "cli/say.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace bide::cli {

namespace {

using engine::check::Finding;
using engine::check::StoreReport;

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

}  // namespace

JsonObject to_json(const StoreReport& report) {
  JsonObject types;
  for (const auto& [type, count] : report.records_by_type) types.add(type, count);
  JsonArray findings;
  for (const Finding& finding : report.findings) {
    findings.add(JsonObject()
                     .add("kind", text_of(finding.kind).name)
                     .add("file", finding.file)
                     .add("offset", finding.offset)
                     .add("text", finding.text));
  }
  JsonObject json;
  json.add("ok", !report.damaged()).add("segments", report.segments).add("batches", report.batches);
  json.add("records", report.records).add("records_by_type", types).add("journal_bytes", report.journal_bytes);
  if (report.snapshot_address) {
    json.add("snapshot", JsonObject().add("address", *report.snapshot_address).add("rows", report.snapshot_rows));
  } else {
    json.add_null("snapshot");
  }
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

}  // namespace bide::cli
