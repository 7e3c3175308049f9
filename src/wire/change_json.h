// Requests that change jobs that are there, as JSON.
//
//   an edit      in wire/edit_json.h
//   a choice     {"ids":["..."]}   or
//   {"filter":{"queue":"mail","kind":"send","group":...,"flow":...,"headers":{"tenant":"acme"},"error":"timeout",
//              "since":...,"until":...},
//                "limit":100,"dry_run":true}; every job that can be meant when "filter" is {} and there is no limit
//                "like":"..."; of the dead: those of the same group (bide/dead_groups.h); without a filter, all of them
//   cancel       a choice, and "state":"dead": only those that are in it
//   replay       a choice, and "keep_attempts":true, "delay":"10s"

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/inspector.h"
#include "wire/problem.h"

namespace bide::wire {

struct Choice {
  std::vector<JobId> ids = {};
  std::optional<JobFilter> filter = {};  // Instead of ids.
  std::string like = {};                 // Of the dead: only of this group, by its id or that of a job of it.
  std::uint64_t limit = 0;               // Of what matches; 0: all.
  bool dry_run = false;                  // Only count what matches.
};

// What is done with them; each request has the options that are its own.
struct ChangeRequest {
  Choice choice = {};
  CancelOptions cancel = {};
  ReplayOptions replay = {};
};

std::optional<Problem> read_cancel(std::string_view body, ChangeRequest& request);
std::string cancel_json(const std::vector<JobId>& ids, const CancelOptions& options);
std::optional<Problem> read_choice(std::string_view body, Choice& choice);
std::optional<Problem> read_replay(std::string_view body, ChangeRequest& request);
// For the jobs of a flow, which the path names: only the options. No body at all is good, too.
std::optional<Problem> read_flow_cancel(std::string_view body, ChangeRequest& request);
std::optional<Problem> read_flow_replay(std::string_view body, ChangeRequest& request);
std::string replay_json(const std::vector<JobId>& ids, const ReplayOptions& options);

}  // namespace bide::wire
