// EnqueueBatch and SettleBatch: the jobs of one enqueue call and the outcomes of one settle call, validated and encoded by
// the caller's thread as far as that needs no state, so that the engine's thread has less to do.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "engine/journal/records.h"

namespace bide::engine {

// The fields of jobs that do not depend on when they are accepted, encoded.
class EncodedJobs {
 public:
  void add(const Job& job);
  std::size_t bytes() const { return bytes_.size(); }
  journal::JobFields operator[](std::size_t index) const {
    const Piece& piece = pieces_[index];
    return {piece.flags, std::string_view(bytes_).substr(piece.at, piece.size)};
  }

 private:
  struct Piece {
    std::size_t at = 0;
    std::uint32_t size = 0;
    std::uint8_t flags = 0;
  };

  std::string bytes_;
  std::vector<Piece> pieces_;
};

// The index and the error of each item that is not valid, in order.
using Refusals = std::vector<std::pair<std::size_t, Error>>;

struct EnqueueBatch {
  static EnqueueBatch of(std::vector<Job> jobs, Time now);

  // About what it takes in memory.
  std::uint64_t bytes() const;

  std::vector<Job> jobs;           // Those that others of them wait for come first.
  std::vector<std::size_t> order;  // Where each of them was in the call; empty: where it is here.
  Refusals refused;
  EncodedJobs encoded;
};

struct EventBatch {
  static EventBatch of(std::vector<Job> events, Time now);

  std::uint64_t bytes() const;

  std::vector<Job> events;
  Refusals refused;
};

struct SettleBatch {
  static SettleBatch of(std::vector<Settlement> settlements, Time now);

  // Of the bytes to be written to the journal.
  std::uint64_t bytes() const;

  std::vector<Settlement> settlements;
  Refusals refused;
  EncodedJobs encoded_effects;  // Of all settlements, one after another.
};

}  // namespace bide::engine
