// A flow for people: as a tree with states, and as a graph in Mermaid's language.

#pragma once

#include <string>

#include "wire/flow_json.h"

namespace bide::cli {

// "62.5 %: 5 done, 1 running, 2 waiting"
std::string flow_summary(const wire::FlowInfo& flow);

// A line for each job, deeper than the last of those it waits for. Many that are alike and that nobody waits for are one line.
std::string flow_tree(const wire::FlowInfo& flow);

std::string flow_graph(const wire::FlowInfo& flow);

}  // namespace bide::cli
