// A flow, which is the jobs that share a flow's id, as JSON: how far it is, and its jobs with what each waits for.
//
//   {"id":"...","percent":62.5,"complete":true,
//    "counts":{"waiting":1,"scheduled":0,"ready":0,"running":1,"done":2,"dead":0},
//    "jobs":[{"id":"...","kind":"fetch","queue":"video","state":"done","after":[],...}]}

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "wire/fields.h"

namespace bide::wire {

struct FlowJob {
  JobId id = {};
  std::string kind = {};
  std::string queue = {};
  JobState state = JobState::kScheduled;
  std::vector<JobId> after = {};
  AfterDeath after_death = AfterDeath::kHold;
  Time due = {};
  std::uint32_t attempts = 0;
  std::optional<Progress> progress = {};
  std::optional<Time> finished = {};
  std::string error = {};  // The newest.
};

struct FlowInfo {
  JobId id = {};
  double percent = 0;    // Of its jobs that are remembered: done, and the part of running ones that they reported.
  bool complete = true;  // Otherwise it has more jobs than kMostFlowJobs; nothing else here counts those.
  std::map<std::string, std::uint64_t> counts = {};  // By state.
  std::vector<FlowJob> jobs = {};                    // Each behind those it waits for.
};

inline constexpr std::size_t kMostFlowJobs = 10'000;

template <>
inline constexpr std::string_view kSchemaName<FlowJob> = "FlowJob";
template <>
std::span<const Field<FlowJob>> rows_of<FlowJob>();
template <>
std::span<const Field<FlowInfo>> rows_of<FlowInfo>();

// `jobs` in any order.
FlowInfo flow_of(const JobId& id, const std::vector<JobInfo>& jobs, bool complete);

std::string flow_json(const FlowInfo& flow);
Result<FlowInfo> read_flow(std::string_view body);

}  // namespace bide::wire
