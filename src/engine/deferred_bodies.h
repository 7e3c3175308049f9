// DeferredBodies: large bodies of jobs that a request shows. The engine's thread finds the jobs and leaves the bodies to another
// thread: reading, verifying and copying 16 MiB takes as long as hundreds of other requests.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bide/inspector.h"
#include "engine/journal/journal.h"

namespace bide::engine {

class DeferredBodies {
 public:
  static constexpr std::uint32_t kLeastBytes = 128 * 1024;  // Of a record; a smaller one is read at once.

  // Without bodies only the other fields of each record are filled in.
  explicit DeferredBodies(bool with_bodies = true) : with_bodies_(with_bodies) {}

  struct Body {
    std::size_t at = 0;          // Index of the job.
    journal::DeferredRead read;  // Reads the record by which the job was accepted.
    bool with_past = false;      // Its history is in the same record.
    bool with_expiry = false;
  };
  void add(Body body) { bodies_.push_back(std::move(body)); }
  std::size_t size() const { return bodies_.size(); }

  // Fills them in, on any thread. An error: one of them cannot be read; the caller asks the ledger again without deferring.
  Status read_into(std::span<JobInfo> jobs) const;

 private:
  bool with_bodies_;
  std::vector<Body> bodies_;
};

}  // namespace bide::engine
