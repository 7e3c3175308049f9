// Offer and Verdicts: jobs to be enqueued and outcomes to be settled, looked over and written out as far as that is
// possible without the ledger. So it is done by the threads of those who ask, and the engine's has less to do.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bide/broker.h"
#include "engine/journal/records.h"

namespace bide::engine {

// Of jobs, what their records will say whenever they are accepted.
class WrittenJobs {
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

// Which of them are not valid, in order.
using Refusals = std::vector<std::pair<std::size_t, Error>>;

struct Offer {
  static Offer of(std::vector<Job> jobs, Time now);

  // About what it takes in memory.
  std::uint64_t bytes() const;

  std::vector<Job> jobs;
  Refusals refused;
  WrittenJobs written;
};

struct Verdicts {
  static Verdicts of(std::vector<Settlement> settlements, Time now);

  // Of what is to be written down.
  std::uint64_t bytes() const;

  std::vector<Settlement> settlements;
  Refusals refused;
  WrittenJobs written_effects;  // Of all settlements, one after another.
};

}  // namespace bide::engine
