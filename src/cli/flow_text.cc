#include "cli/flow_text.h"

#include <cstddef>
#include <map>
#include <vector>

#include "cli/jobs.h"
#include "cli/output.h"

namespace bide::cli {

namespace {

using wire::FlowInfo;
using wire::FlowJob;

constexpr std::size_t kAlike = 5;       // More of them in a row are one line,
constexpr std::size_t kShownAlike = 2;  // behind the first ones.

class FlowTree {
 public:
  explicit FlowTree(const FlowInfo& flow) : flow_(flow), children_(flow.jobs.size()) {
    std::map<JobId, std::size_t> places;
    for (std::size_t i = 0; i < flow.jobs.size(); ++i) {
      std::size_t parent = flow.jobs.size();
      for (const JobId& id : flow.jobs[i].after) {
        const auto found = places.find(id);
        // The last of them: behind it, all that the job waits for has been shown.
        if (found != places.end() && (parent == flow.jobs.size() || found->second > parent)) parent = found->second;
      }
      (parent == flow.jobs.size() ? roots_ : children_[parent]).push_back(i);
      places.emplace(flow.jobs[i].id, i);
    }
  }

  std::string text() {
    // A chain may be as long as a flow.
    std::vector<Level> levels = {{&roots_}};
    while (!levels.empty()) {
      Level& level = levels.back();
      if (level.next == level.jobs->size()) {
        levels.pop_back();
        continue;
      }
      const std::size_t depth = levels.size() - 1;
      const std::size_t place = (*level.jobs)[level.next];
      const std::size_t alike = alike_from(*level.jobs, level.next);
      if (alike > kAlike) {
        for (std::size_t i = 0; i < kShownAlike; ++i) add(flow_.jobs[(*level.jobs)[level.next + i]], depth);
        const FlowJob& job = flow_.jobs[place];
        table_.row({indented("... and " + std::to_string(alike - kShownAlike) + " more " + job.kind, depth), "",
                    std::string(to_string(job.state))});
        level.next += alike;
        continue;
      }
      ++level.next;
      add(flow_.jobs[place], depth);
      if (!children_[place].empty()) levels.push_back({&children_[place]});
    }
    return table_.text();
  }

 private:
  struct Level {
    const std::vector<std::size_t>* jobs;
    std::size_t next = 0;
  };

  static std::string indented(const std::string& text, std::size_t depth) { return std::string(2 * depth, ' ') + text; }

  // How many in a row have the same kind and state, and nobody behind them.
  std::size_t alike_from(const std::vector<std::size_t>& jobs, std::size_t from) const {
    const FlowJob& first = flow_.jobs[jobs[from]];
    std::size_t end = from;
    while (end < jobs.size() && children_[jobs[end]].empty() && flow_.jobs[jobs[end]].kind == first.kind &&
           flow_.jobs[jobs[end]].state == first.state) {
      ++end;
    }
    return end - from;
  }

  void add(const FlowJob& job, std::size_t depth) {
    std::string more;
    const auto say = [&more](const std::string& text) { more += (more.empty() ? "" : "; ") + text; };
    if (job.progress) say(percent_text(job.progress->part * 100) + (job.progress->note.empty() ? "" : ", " + job.progress->note));
    if (job.after.size() > 1) say("after " + std::to_string(job.after.size()) + " jobs");
    if (job.state != JobState::kDone && !job.error.empty()) say(shortened(job.error, 48));
    table_.row({indented(job.kind, depth), job.id.to_string(), std::string(to_string(job.state)), more});
  }

  const FlowInfo& flow_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> roots_;
  Table table_;
};

}  // namespace

std::string flow_summary(const FlowInfo& flow) {
  std::string text = percent_text(flow.percent) + ":";
  std::string separator = " ";
  for (const char* state : {"done", "running", "ready", "scheduled", "waiting", "dead"}) {
    const auto found = flow.counts.find(state);
    if (found == flow.counts.end() || found->second == 0) continue;
    text += separator + std::to_string(found->second) + " " + state;
    separator = ", ";
  }
  if (!flow.complete) text += "; only the first " + std::to_string(flow.jobs.size()) + " jobs are counted";
  return text;
}

std::string flow_tree(const FlowInfo& flow) { return FlowTree(flow).text(); }

std::string flow_graph(const FlowInfo& flow) {
  std::string text = "flowchart TD\n";
  std::map<JobId, std::string> names;
  for (const FlowJob& job : flow.jobs) {
    const std::string name = "j" + std::to_string(names.size() + 1);
    names.emplace(job.id, name);
    text += "  " + name + "[\"" + job.kind + "<br/>" + std::string(to_string(job.state)) + "\"]:::" +
            std::string(to_string(job.state)) + "\n";
  }
  for (const FlowJob& job : flow.jobs) {
    for (const JobId& id : job.after) {
      const auto found = names.find(id);
      if (found != names.end()) text += "  " + found->second + " --> " + names[job.id] + "\n";
    }
  }
  return text +
         "  classDef done fill:#d7f0dd,stroke:#2e7d32,color:#1b1b1b\n"
         "  classDef running fill:#d6e8fb,stroke:#1565c0,color:#1b1b1b\n"
         "  classDef dead fill:#fbdcdc,stroke:#b71c1c,color:#1b1b1b\n"
         "  classDef ready fill:#fff3cf,stroke:#b26a00,color:#1b1b1b\n"
         "  classDef scheduled fill:#fff3cf,stroke:#b26a00,color:#1b1b1b\n"
         "  classDef waiting fill:#eeeeee,stroke:#757575,color:#1b1b1b\n";
}

}  // namespace bide::cli
