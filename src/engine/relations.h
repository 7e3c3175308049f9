// Relations: which job waits for which, and which flow a job belongs to. A job without any costs nothing; one that has some
// has a node of 20 bytes, found by its slot, and each wait is an edge of 8 bytes that hangs at the job that is waited for.
//
// A node outlives its job while edges lead to it: whoever removes a job that waits need not look for them.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "bide/job.h"
#include "bide/job_id.h"
#include "engine/entry.h"
#include "platform/keyed_hash.h"

namespace bide::engine {

class Relations {
 public:
  // The job has none yet. A nil flow is none.
  void add(Slot slot, const JobId& flow, AfterDeath after_death);
  // Both may have none yet.
  void add_edge(Slot awaited, Slot waiter);
  // The job has got another slot.
  void move(Slot from, Slot to);
  // The job is gone; who waited for it has been told.
  void remove(Slot slot);

  // So many jobs are not done yet for which this one waits.
  std::uint32_t waits_for(Slot slot) const { return node_at(slot).waits_for; }
  AfterDeath after_death(Slot slot) const { return static_cast<AfterDeath>(node_at(slot).after_death); }
  // Nil: none.
  JobId flow(Slot slot) const { return flows_[node_at(slot).flow].id; }
  bool is_in_flow(Slot slot, const JobId& flow) const;
  std::uint64_t jobs_in_flow(const JobId& flow) const;
  // False: the job has nothing that is worth a node.
  bool has_any(Slot slot) const;
  bool empty() const { return used_ == 0; }
  template <class F>
  void for_each_waiter(Slot slot, F see) const {
    const Node& node = node_at(slot);
    for (const std::uint32_t list : {node.holders, node.others}) {
      if (list == 0) continue;
      std::uint32_t at = list;
      do {
        at = edges_[at].next;
        if (nodes_[edges_[at].waiter].slot != kNoSlot) see(nodes_[edges_[at].waiter].slot);
      } while (at != list);
    }
  }

  // How a job ended: those that wait for it are told one by one. Of a dead one only those that do not hold.
  enum class End : std::uint8_t { kDone, kDead, kRemoved };
  // `at_ms` on the clock of spans.
  void end(Slot slot, End how, std::int64_t at_ms);
  bool has_ended() const { return !ended_.empty(); }
  struct Told {
    Slot slot = kNoSlot;      // kNoSlot: who waited is gone.
    bool released = false;    // It waits for one less; otherwise it is to be cancelled.
    std::int64_t at_ms = 0;
  };
  Told tell_next();

  // A job that waits for one that will not be done, and is to be cancelled; kNoSlot: there is none. The same again until it is
  // removed or has been spared.
  Slot next_to_cancel();
  void spare_next();
  // The job is to be cancelled, because of one that it has begun to wait for.
  void doom(Slot slot);
  bool has_to_cancel() const { return !to_cancel_.empty(); }

 private:
  struct Node {
    Slot slot = kNoSlot;
    std::uint32_t flow = 0;
    std::uint32_t waits_for : 30 = 0;
    std::uint32_t after_death : 2 = 0;
    // Those that wait for it, by what becomes of them when it dies: the last edge of a ring in their order; 0: nobody.
    std::uint32_t holders = 0;
    std::uint32_t others = 0;
  };
  static_assert(sizeof(Node) == 20);
  struct Edge {
    std::uint32_t waiter = 0;  // A node.
    std::uint32_t next = 0;
  };
  struct Flow {
    JobId id;
    std::uint32_t jobs = 0;
  };
  struct Ended {
    std::uint32_t edges = 0;  // The first.
    bool done = false;
    std::int64_t at_ms = 0;
  };
  static constexpr unsigned kPageBits = 10;
  // The nodes of neighbouring slots; 0: none.
  struct Page {
    std::array<std::uint32_t, 1u << kPageBits> nodes{};
    std::uint32_t used = 0;
  };

  std::uint32_t find(Slot slot) const;
  const Node& node_at(Slot slot) const { return nodes_[find(slot)]; }
  std::uint32_t node_of(Slot slot);  // Made if need be.
  void place(Slot slot, std::uint32_t node);
  void displace(Slot slot);
  void count_down(std::uint32_t node);
  void free_if_unused(std::uint32_t node);
  std::uint32_t flow_number(const JobId& flow);
  void leave_flow(Node& node);

  std::vector<std::unique_ptr<Page>> pages_;
  std::deque<Node> nodes_ = std::deque<Node>(1);  // The first is nobody's.
  std::deque<Edge> edges_ = std::deque<Edge>(1);
  std::vector<std::uint32_t> free_nodes_;
  std::vector<std::uint32_t> free_edges_;
  std::vector<Flow> flows_ = std::vector<Flow>(1);  // The first is none.
  std::vector<std::uint32_t> free_flows_;
  platform::KeyedMap<JobId, std::uint32_t> flow_by_id_;
  std::size_t used_ = 0;  // Nodes.
  std::deque<Ended> ended_;
  std::deque<std::uint32_t> to_cancel_;  // Nodes; each has one wait more for being here.
};

}  // namespace bide::engine
