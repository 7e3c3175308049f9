#include "crash/history.h"

#include <fstream>
#include <sstream>

namespace bide::crash {
namespace {

struct Seen {
  bool confirmed = false;
  bool done = false;
  std::uint64_t running = 0;    // Token of the attempt that has begun and not ended.
  std::uint64_t unsettled = 0;  // Token of the last attempt, while its settle is not confirmed.
  std::uint32_t last_attempt = 0;
  std::uint64_t process = 0;  // In which that was.
};

}  // namespace

Findings examine(const std::string& path) {
  Findings findings;
  std::map<std::string, Seen> jobs;
  const auto problem = [&findings](std::uint64_t& counter, const std::string& line) {
    if (findings.first_problem.empty()) findings.first_problem = line;
    ++counter;
  };
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    char event = 0;
    std::string id;
    in >> event >> id;
    if (event == 'O') {
      ++findings.processes;
      continue;
    }
    Seen& job = jobs[id];
    std::uint64_t token = 0;
    if (event == 'E') {
      job.confirmed = true;
      ++findings.confirmed;
    } else if (event == 'S') {
      std::uint32_t attempt = 0;
      std::int64_t now_us = 0;
      std::int64_t not_before_us = 0;
      in >> token >> attempt >> now_us >> not_before_us;
      ++findings.starts;
      if (now_us < not_before_us) problem(findings.early, line);
      if (job.done) problem(findings.run_after_settle, line);
      if (job.running != 0 && job.process == findings.processes) problem(findings.overlap, line);
      if (job.unsettled != 0 && job.process != findings.processes) {
        ++findings.duplicates_by_crash;
        if (attempt <= job.last_attempt) problem(findings.attempts_not_counted, line);
      } else if (job.last_attempt != 0) {
        ++findings.retries;
      }
      job.running = job.unsettled = token;
      job.last_attempt = attempt;
      job.process = findings.processes;
    } else {
      in >> token;
      if (event == 'F' && job.running == token) job.running = 0;
      if ((event == 'D' || event == 'R') && job.unsettled == token) job.unsettled = 0;
      if (event == 'D') {
        job.done = true;
        ++findings.settled;
      }
    }
  }
  for (const auto& [id, job] : jobs) {
    if (job.confirmed) findings.jobs[id] = job.done;
  }
  return findings;
}

}  // namespace bide::crash
