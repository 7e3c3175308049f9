#include "cli/top_view.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>

#include "cli/jobs.h"
#include "cli/output.h"
#include "core/duration.h"
#include "core/time_text.h"

namespace bide::cli {

namespace {

constexpr std::size_t kRunningShown = 6;
constexpr std::array<std::string_view, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::uint64_t detail(const AuditReport& audit, const char* name) {
  const auto found = audit.details.find(name);
  return found == audit.details.end() ? 0 : found->second;
}

double per_second(std::uint64_t now, std::uint64_t before, double seconds) {
  return now <= before || seconds <= 0 ? 0 : static_cast<double>(now - before) / seconds;
}

Milliseconds lateness_of(const QueueInfo& queue, Time now) {
  return queue.oldest_ready && *queue.oldest_ready < now ? now - *queue.oldest_ready : Milliseconds(0);
}

// At most so many characters, as a terminal counts them; those of our own names and bars are one column each.
std::string cut(std::string_view line, std::size_t width) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if ((static_cast<unsigned char>(line[at]) & 0xc0) == 0x80) continue;
    if (columns++ == width) return std::string(line.substr(0, at));
  }
  return std::string(line);
}

std::string rate_line(std::string_view name, double rate, const char* unit, const std::string& course) {
  char number[64];
  std::snprintf(number, sizeof number, "%-6.*s %9.1f%s  ", static_cast<int>(name.size()), name.data(), rate, unit);
  return number + course;
}

}  // namespace

std::string sparkline(const std::vector<double>& values, std::size_t width) {
  const std::size_t shown = std::min(values.size(), width);
  const auto first = values.end() - static_cast<std::ptrdiff_t>(shown);
  const double most = shown == 0 ? 0 : *std::max_element(first, values.end());
  std::string text;
  for (auto value = first; value != values.end(); ++value) {
    const double part = most > 0 ? *value / most : 0;
    text += kBars[std::min(kBars.size() - 1, static_cast<std::size_t>(part * static_cast<double>(kBars.size() - 1) + 0.5))];
  }
  return text;
}

void TopView::add(TopLook look) {
  Rates rates;
  for (const QueueInfo& queue : look.queues) rates.ready += static_cast<double>(queue.ready);
  if (any_) {
    rates.in = per_second(look.audit.accepted, last_.audit.accepted, look.seconds);
    rates.done = per_second(look.audit.done, last_.audit.done, look.seconds);
    rates.dead = per_second(detail(look.audit, "dead"), detail(last_.audit, "dead"), look.seconds);
  }
  any_ = true;
  course_.push_back(rates);
  if (course_.size() > kCourse) course_.pop_front();
  last_ = std::move(look);
}

std::vector<QueueInfo> TopView::sorted_queues() const {
  std::vector<QueueInfo> queues = last_.queues;
  const auto key = [&](const QueueInfo& queue) -> std::uint64_t {
    switch (order_) {
      case Order::kName: return 0;
      case Order::kReady: return queue.ready;
      case Order::kRunning: return queue.running;
      case Order::kDead: return queue.dead;
      case Order::kLate: return static_cast<std::uint64_t>(lateness_of(queue, last_.at).count());
    }
    return 0;
  };
  std::stable_sort(queues.begin(), queues.end(), [&](const QueueInfo& a, const QueueInfo& b) {
    return key(a) != key(b) ? key(a) > key(b) : a.name < b.name;
  });
  return queues;
}

std::vector<TopView::Load> TopView::running_by(bool kind) const {
  std::map<std::string, std::uint64_t> counts;
  for (const JobInfo& info : last_.running) ++counts[kind ? info.job.kind : info.worker];
  std::vector<Load> loads;
  for (const auto& [name, jobs] : counts) loads.push_back({name, jobs});
  std::stable_sort(loads.begin(), loads.end(), [](const Load& a, const Load& b) { return a.jobs > b.jobs; });
  return loads;
}

std::string TopView::text(std::size_t width, std::size_t height, bool keys) const {
  constexpr std::array<std::string_view, kOrders> kOrderNames = {"name", "ready", "running", "dead", "late"};
  const Rates now = course_.empty() ? Rates{} : course_.back();
  const std::size_t room = width == 0 ? 60 : width > 24 ? width - 24 : 0;
  const auto course = [&](double Rates::*field) {
    std::vector<double> values;
    for (const Rates& each : course_) values.push_back(each.*field);
    return sparkline(values, std::min<std::size_t>(room, kCourse));
  };
  std::vector<std::string> lines;
  lines.push_back(core::format_time(last_.at) + "   live " + std::to_string(last_.audit.live));
  lines.push_back(rate_line("in", now.in, "/s", course(&Rates::in)));
  lines.push_back(rate_line("done", now.done, "/s", course(&Rates::done)));
  lines.push_back(rate_line("dead", now.dead, "/s", course(&Rates::dead)));
  lines.push_back(rate_line("ready", now.ready, "  ", course(&Rates::ready)));
  lines.emplace_back();

  Table table({"queue", "ready", "running", "late", "scheduled", "dead", "done", "workers", ""},
              {Table::Align::kLeft, Table::Align::kRight, Table::Align::kRight, Table::Align::kRight, Table::Align::kRight,
               Table::Align::kRight, Table::Align::kRight, Table::Align::kRight});
  for (const QueueInfo& queue : sorted_queues()) {
    const Milliseconds late = lateness_of(queue, last_.at);
    table.row({queue.name, std::to_string(queue.ready), std::to_string(queue.running),
               late.count() == 0 ? "-" : core::rough_duration(late), std::to_string(queue.scheduled), std::to_string(queue.dead),
               std::to_string(queue.done), std::to_string(queue.workers), queue.paused ? "paused" : ""});
  }
  const std::string rows = table.text();
  for (std::size_t at = 0; at < rows.size();) {
    const std::size_t end = std::min(rows.find('\n', at), rows.size());
    lines.push_back(rows.substr(at, end - at));
    at = end + 1;
  }

  std::vector<std::string> below;
  for (const bool kind : {true, false}) {
    const std::vector<Load> loads = running_by(kind);
    if (loads.empty()) continue;
    std::string line = kind ? "running: " : "workers: ";
    for (std::size_t i = 0; i < std::min(loads.size(), kRunningShown); ++i) {
      line += (i == 0 ? "" : ", ") + for_people(loads[i].name) + " " + std::to_string(loads[i].jobs);
    }
    below.push_back(loads.size() > kRunningShown ? line + ", ..." : line);
  }
  if (keys) below.push_back("q quit   s sort, by " + std::string(kOrderNames[static_cast<std::size_t>(order_)]));
  if (height != 0 && lines.size() + below.size() + 1 > height) {
    lines.resize(height > below.size() + 1 ? height - below.size() - 1 : 0);
  }
  if (!below.empty()) lines.emplace_back();
  lines.insert(lines.end(), below.begin(), below.end());
  std::string text;
  for (const std::string& line : lines) {
    // Headings in bold end with a code that must stay: only plain lines are cut.
    const bool is_styled = line.find('\x1b') != std::string::npos;
    text += (width == 0 || (is_styled && line.size() <= width + 8) ? line : cut(line, width)) + (is_styled ? "\x1b[0m\n" : "\n");
  }
  return text;
}

JsonObject TopView::json() const {
  const Rates now = course_.empty() ? Rates{} : course_.back();
  const auto loads = [&](bool kind) {
    JsonObject counts;
    for (const Load& load : running_by(kind)) counts.add(load.name, load.jobs);
    return counts;
  };
  return JsonObject()
      .add("at", last_.at)
      .add("in_per_s", now.in)
      .add("done_per_s", now.done)
      .add("dead_per_s", now.dead)
      .add("live", last_.audit.live)
      .add("queues", JsonArray(sorted_queues()))
      .add("running_by_kind", loads(true))
      .add("running_by_worker", loads(false));
}

}  // namespace bide::cli
