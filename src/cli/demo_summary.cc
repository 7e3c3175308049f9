#include "cli/demo_summary.h"

#include <cstdint>
#include <map>
#include <utility>

#include "cli/ask.h"
#include "cli/audit_text.h"
#include "cli/job_selection.h"
#include "cli/json.h"
#include "cli/table.h"

namespace bide::cli {

namespace {

struct Row {
  std::uint64_t jobs = 0;
  std::uint64_t at_once = 0;   // Done in the first attempt.
  std::uint64_t retried = 0;   // Done in a later one.
  std::uint64_t dead = 0;
  std::uint64_t open = 0;
  std::uint64_t attempts = 0;
};

std::map<std::string, Row> rows_of(Inspector& inspector) {
  std::map<std::string, Row> rows;
  for (const JobInfo& info : list_all(inspector, {.bodies = false}, 1'000'000).jobs) {
    Row& row = rows[info.job.kind];
    ++row.jobs;
    row.attempts += info.attempts;
    if (info.state == JobState::kDead) {
      ++row.dead;
    } else if (info.state != JobState::kDone) {
      ++row.open;
    } else if (info.attempts <= 1) {
      ++row.at_once;
    } else {
      ++row.retried;
    }
  }
  return rows;
}

}  // namespace

std::string demo_summary(const Client& client, double seconds, bool json) {
  Inspector& inspector = client.inspector();
  const std::map<std::string, Row> rows = rows_of(inspector);
  const AuditReport audit = ask<AuditReport>([&](auto done) { inspector.audit(std::move(done)); });
  if (json) {
    JsonObject kinds;
    for (const auto& [kind, row] : rows) {
      kinds.add(kind, JsonObject()
                          .add("jobs", row.jobs)
                          .add("done_at_once", row.at_once)
                          .add("done_after_retries", row.retried)
                          .add("dead", row.dead)
                          .add("open", row.open)
                          .add("attempts", row.attempts));
    }
    return JsonObject().add("seconds", seconds).add("kinds", kinds).add("audit", to_json(audit)).text() + "\n";
  }
  constexpr auto kRight = Table::Align::kRight;
  Table table({"kind", "jobs", "done at once", "done after retries", "dead", "open", "attempts"},
              {Table::Align::kLeft, kRight, kRight, kRight, kRight, kRight, kRight});
  for (const auto& [kind, row] : rows) {
    table.row({kind, std::to_string(row.jobs), std::to_string(row.at_once), std::to_string(row.retried),
               std::to_string(row.dead), std::to_string(row.open), std::to_string(row.attempts)});
  }
  return table.text() + "\n" + audit_text(audit);
}

}  // namespace bide::cli
