// SimulatedDisk::State: what a simulated disk consists of. Only simulated_disk.cc includes this.

#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "platform/fatal.h"
#include "support/name_tree.h"
#include "support/paged_content.h"
#include "support/simulated_disk.h"

namespace bide::support {

struct SimulatedDisk::State {
  struct Node {
    std::uint64_t owner = 0;
    PagedContent content;
  };

  explicit State(std::uint64_t seed) : random(seed) {}

  mutable std::mutex mutex;  // Guards everything below.
  Token token;               // A node with this owner belongs to this disk alone.
  SeededRandom random;
  NameTree names;
  std::map<NodeId, std::shared_ptr<Node>> nodes;  // Of files.
  std::map<NodeId, int> handles;
  std::set<NodeId> locks;
  Space space;
  RecycledPages recycled;
  FaultPlan faults;
  Hook hook;
  std::uint64_t operations = 0;
  std::uint64_t life = 0;  // Raised by each crash; what was opened in an earlier life is dead.
  bool halted = false;
  bool can_allocate = true;

  const PagedContent& content(NodeId id) const { return nodes.at(id)->content; }

  PagedContent& change(NodeId id) {
    auto& node = nodes.at(id);
    if (node->owner != token.value()) {
      node = std::make_shared<Node>(*node);
      node->owner = token.value();
    }
    return node->content;
  }

  void add_file(NodeId id) {
    nodes[id] = std::make_shared<Node>();
    nodes[id]->owner = token.value();
  }

  // Announces an operation to the hook, without the lock, since the hook may use the disk.
  void announce(Operation operation, std::string_view path, std::uint64_t offset = 0, std::uint64_t bytes = 0) {
    Hook call;
    OperationInfo info{.operation = operation, .path = path, .offset = offset, .bytes = bytes};
    {
      const std::lock_guard lock(mutex);
      if (halted) return;
      info.index = operations++;
      call = hook;
    }
    if (call) call(info);
  }

  // Counts the operation; the errno with which it has to fail before anything is done, or 0.
  int count(Operation operation) {
    if (halted) return EIO;
    const auto fault = faults.next(operation);
    if (!fault) return 0;
    return *fault == Fault::kDiskFull ? ENOSPC : EIO;
  }

  // Forgets files that nothing can bring back, and counts the space of those that are still in use.
  void sweep() {
    const auto possible = names.possible_nodes();
    const auto visible = names.visible_nodes();
    space.used_bytes = 0;
    for (auto it = nodes.begin(); it != nodes.end();) {
      const bool open = handles.contains(it->first);
      if (open || visible.contains(it->first)) {
        space.used_bytes += it->second->content.allocated_pages() * kPageBytes;
      } else if (!possible.contains(it->first)) {
        it->second->content.recycle_into(recycled);
        it = nodes.erase(it);
        continue;
      }
      ++it;
    }
  }

  void crash(const CrashOptions& options) {
    life += 1;
    halted = false;
    handles.clear();
    locks.clear();
    SeededRandom own(options.seed.value_or(0));
    SeededRandom& chance = options.seed ? own : random;
    if (options.unsynced == Survival::kNothing) {
      names.lose_unsynced();
      for (const auto& [id, node] : nodes) {
        if (!node->content.settled()) change(id).lose_unsynced();
      }
    } else if (options.unsynced == Survival::kChance) {
      CrashOdds odds = CrashOdds::draw(chance);
      odds.stale_growth = odds.stale_growth && options.stale_growth;
      names.crash(odds, chance);
      for (const auto& [id, node] : nodes) {
        if (!node->content.settled()) change(id).crash(odds, chance, recycled);
      }
    }
    sweep();
  }

  NodeId file_at(const std::string& path) const {
    const auto place = names.find(path);
    platform::require(place.error == 0 && nodes.contains(place.node), "the test names a file that is there");
    return place.node;
  }
};

}  // namespace bide::support
