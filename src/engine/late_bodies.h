// LateBodies: large bodies of jobs that somebody looks at. The engine's thread finds the jobs and leaves their bodies to another
// thread: to read, verify and copy 16 MiB takes as long as hundreds of other requests.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bide/inspector.h"
#include "engine/journal/journal.h"

namespace bide::engine {

class LateBodies {
 public:
  static constexpr std::uint32_t kLeastBytes = 128 * 1024;  // Of a record; less is read at once.

  // Without bodies the rest of each record is filled in.
  explicit LateBodies(bool with_bodies = true) : with_bodies_(with_bodies) {}

  struct Late {
    std::size_t at = 0;       // Of which job.
    journal::LateRead read;   // Gives the record by which it was accepted.
    bool with_past = false;   // Its history is in the same record.
    bool with_expiry = false;
  };
  void add(Late late) { late_.push_back(std::move(late)); }
  std::size_t size() const { return late_.size(); }

  // Fills in what was left out, on whatever thread. An error: one of them cannot be read, and the ledger is asked again
  // without this, to deal with it.
  Status read_into(std::span<JobInfo> jobs) const;

 private:
  bool with_bodies_;
  std::vector<Late> late_;
};

}  // namespace bide::engine
