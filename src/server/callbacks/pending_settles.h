// PendingSettles: deliveries that were answered 202 and are not settled yet, on disk, so that the next process keeps
// their leases alive.
//
//   FOLDER/0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1.17     the lease as JSON, without body, headers and history
//
// Best effort, so nothing is synced: a missing entry costs a second delivery, one too many a request to the broker, whose
// leases and tokens decide.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bide/lease.h"
#include "bide/result.h"

namespace bide::server {

class PendingSettles {
 public:
  // Empty: nothing is stored. The folder is created with the first entry.
  explicit PendingSettles(std::string folder) : folder_(std::move(folder)) {}

  // With their age as of now. Removes what cannot be read.
  std::vector<Lease> read() const;
  // kIoError: it is not stored.
  Status add(Lease lease) const;
  void remove(const LeaseRef& lease) const;

 private:
  std::string path_of(const LeaseRef& lease) const;

  const std::string folder_;
};

}  // namespace bide::server
