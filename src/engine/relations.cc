#include "engine/relations.h"

#include <utility>

#include "platform/fatal.h"

namespace bide::engine {

std::uint32_t Relations::find(Slot slot) const {
  const std::size_t page = slot >> kPageBits;
  if (page >= pages_.size() || !pages_[page]) return 0;
  return pages_[page]->nodes[slot & ((1u << kPageBits) - 1)];
}

void Relations::place(Slot slot, std::uint32_t node) {
  const std::size_t number = slot >> kPageBits;
  if (number >= pages_.size()) pages_.resize(number + 1);
  if (!pages_[number]) pages_[number] = std::make_unique<Page>();
  Page& page = *pages_[number];
  page.nodes[slot & ((1u << kPageBits) - 1)] = node;
  ++page.used;
  nodes_[node].slot = slot;
}

void Relations::displace(Slot slot) {
  std::unique_ptr<Page>& page = pages_[slot >> kPageBits];
  page->nodes[slot & ((1u << kPageBits) - 1)] = 0;
  if (--page->used == 0) page.reset();
}

std::uint32_t Relations::node_of(Slot slot) {
  if (const std::uint32_t known = find(slot); known != 0) return known;
  std::uint32_t node = static_cast<std::uint32_t>(nodes_.size());
  if (free_nodes_.empty()) {
    nodes_.emplace_back();
  } else {
    node = free_nodes_.back();
    free_nodes_.pop_back();
    nodes_[node] = Node{};
  }
  ++used_;
  place(slot, node);
  return node;
}

std::uint32_t Relations::flow_number(const JobId& flow) {
  const auto [known, made] = flow_by_id_.try_emplace(flow, static_cast<std::uint32_t>(flows_.size()));
  if (!made) return known->second;
  if (free_flows_.empty()) {
    flows_.push_back({flow, 0});
  } else {
    known->second = free_flows_.back();
    free_flows_.pop_back();
    flows_[known->second] = {flow, 0};
  }
  return known->second;
}

void Relations::leave_flow(Node& node) {
  const std::uint32_t number = std::exchange(node.flow, 0);
  if (number == 0 || --flows_[number].jobs != 0) return;
  flow_by_id_.erase(flows_[number].id);
  flows_[number] = {};
  free_flows_.push_back(number);
}

void Relations::add(Slot slot, const JobId& flow, AfterDeath after_death) {
  Node& node = nodes_[node_of(slot)];
  node.after_death = static_cast<std::uint32_t>(after_death) & 3u;
  if (flow.is_nil() || node.flow != 0) return;
  node.flow = flow_number(flow);
  ++flows_[node.flow].jobs;
}

void Relations::add_edge(Slot awaited, Slot waiter) {
  const std::uint32_t from = node_of(awaited);
  const std::uint32_t to = node_of(waiter);
  std::uint32_t edge = static_cast<std::uint32_t>(edges_.size());
  if (free_edges_.empty()) {
    edges_.emplace_back();
  } else {
    edge = free_edges_.back();
    free_edges_.pop_back();
  }
  const bool holds = nodes_[to].after_death == static_cast<std::uint32_t>(AfterDeath::kHold);
  std::uint32_t& list = holds ? nodes_[from].holders : nodes_[from].others;
  edges_[edge] = {to, list == 0 ? edge : std::exchange(edges_[list].next, edge)};
  list = edge;
  ++nodes_[to].waits_for;
}

void Relations::move(Slot from, Slot to) {
  const std::uint32_t node = find(from);
  if (node == 0) return;
  displace(from);
  place(to, node);
}

void Relations::remove(Slot slot) {
  const std::uint32_t node = find(slot);
  if (node == 0) return;
  displace(slot);
  leave_flow(nodes_[node]);
  nodes_[node].slot = kNoSlot;
  free_if_unused(node);
}

void Relations::free_if_unused(std::uint32_t number) {
  Node& node = nodes_[number];
  if (node.slot != kNoSlot || node.waits_for != 0) return;
  platform::require(node.holders == 0 && node.others == 0, "a job is gone and those that wait for it were not told");
  free_nodes_.push_back(number);
  --used_;
}

void Relations::count_down(std::uint32_t node) {
  platform::require(nodes_[node].waits_for > 0, "a job waits for fewer than none");
  --nodes_[node].waits_for;
  free_if_unused(node);
}

bool Relations::is_in_flow(Slot slot, const JobId& flow) const {
  const std::uint32_t number = node_at(slot).flow;
  return number != 0 && flows_[number].id == flow;
}

std::uint64_t Relations::jobs_in_flow(const JobId& flow) const {
  const auto found = flow_by_id_.find(flow);
  return found == flow_by_id_.end() ? 0 : flows_[found->second].jobs;
}

bool Relations::has_any(Slot slot) const {
  const Node& node = node_at(slot);
  return node.flow != 0 || node.waits_for != 0 || node.holders != 0 || node.others != 0;
}

void Relations::end(Slot slot, End how, std::int64_t at_ms) {
  const std::uint32_t node = find(slot);
  if (node == 0) return;
  const auto tell = [&](std::uint32_t& list) {
    if (list == 0) return;
    const std::uint32_t last = std::exchange(list, 0);
    ended_.push_back({std::exchange(edges_[last].next, 0), how == End::kDone, at_ms});
  };
  tell(nodes_[node].others);
  if (how != End::kDead) tell(nodes_[node].holders);
}

Relations::Told Relations::tell_next() {
  Ended& ended = ended_.front();
  const std::uint32_t number = ended.edges;
  const std::uint32_t waiter = edges_[number].waiter;
  const bool done = ended.done;
  Told told{.at_ms = ended.at_ms};
  ended.edges = edges_[number].next;
  if (ended.edges == 0) ended_.pop_front();
  free_edges_.push_back(number);
  told.slot = nodes_[waiter].slot;
  told.released = done || nodes_[waiter].after_death == static_cast<std::uint32_t>(AfterDeath::kRun);
  if (told.released || told.slot == kNoSlot) {
    count_down(waiter);
  } else {
    to_cancel_.push_back(waiter);
  }
  return told;
}

void Relations::doom(Slot slot) {
  const std::uint32_t node = node_of(slot);
  ++nodes_[node].waits_for;
  to_cancel_.push_back(node);
}

Slot Relations::next_to_cancel() {
  while (!to_cancel_.empty()) {
    const Slot slot = nodes_[to_cancel_.front()].slot;
    if (slot != kNoSlot) return slot;
    spare_next();
  }
  return kNoSlot;
}

void Relations::spare_next() {
  const std::uint32_t node = to_cancel_.front();
  to_cancel_.pop_front();
  count_down(node);
}

}  // namespace bide::engine
