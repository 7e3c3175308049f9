// NameTree: the directories of a simulated disk, as the process sees them and as they lie on the medium.
//
// Making, renaming and removing a name are changes that wait for a sync of the directory they happened in. At a power
// loss each waiting change is kept or dropped, a rename as a whole, and never one without the earlier ones of the same
// names. Whether the file's own bytes were synced makes no difference: a synced file can still lose its name.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/paged_content.h"
#include "support/seeded_random.h"

namespace bide::support {

using NodeId = std::uint64_t;  // A file or a directory, whatever its name. 0 is none.

class NameTree {
 public:
  NameTree();

  // A path is absolute whether it begins with a slash or not; `..` is not understood.
  struct Place {
    int error = 0;         // An errno when a directory on the way is missing.
    NodeId directory = 0;  // 0 for the root itself.
    std::string name = {};
    NodeId node = 0;  // 0 when there is nothing of this name.
  };
  Place find(std::string_view path) const;
  bool is_directory(NodeId node) const { return directories_.contains(node); }
  std::vector<std::string> list(NodeId directory) const;

  NodeId create_file(const Place& place);
  NodeId make_directory(const Place& place);
  int rename(const Place& from, const Place& to);  // An errno; 0 is success.
  int remove(const Place& place);

  void sync(NodeId directory);
  // The directory's changes count as written from now on, though they are not.
  void fail_sync(NodeId directory);
  void lose_unsynced();
  void crash(const CrashOdds& odds, SeededRandom& random);

  // Path and node of every file, sorted.
  std::vector<std::pair<std::string, NodeId>> files() const { return walk(&Directory::current); }
  std::vector<std::pair<std::string, NodeId>> durable_files() const { return walk(&Directory::durable); }
  std::vector<std::string> durable_directories() const;
  std::set<NodeId> visible_nodes() const;   // Those that have a name now.
  std::set<NodeId> possible_nodes() const;  // Those that have one now, or may have one after a power loss.

 private:
  using Entries = std::map<std::string, NodeId>;
  struct Directory {
    Entries current;
    Entries durable;
  };
  using Name = std::pair<NodeId, std::string>;
  struct Change {
    Name from;  // Directory 0: the node is new.
    Name to;    // Directory 0: the node is removed.
    NodeId node = 0;
    bool abandoned = false;
    bool touches(NodeId directory) const { return from.first == directory || to.first == directory; }
  };

  NodeId add(const Place& place);
  void apply(const Change& change);
  void take_durable_view();
  bool lies_within(NodeId inner, NodeId outer) const;
  std::vector<std::pair<std::string, NodeId>> walk(Entries Directory::*view) const;

  std::map<NodeId, Directory> directories_;
  std::vector<Change> waiting_;  // In the order in which they were made.
  NodeId last_node_ = 0;
};

}  // namespace bide::support
