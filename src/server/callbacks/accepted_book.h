// AcceptedBook: the deliveries that were answered 202 and are not settled yet, kept in a folder, so that the next
// process keeps their leases alive as this one did.
//
//   FOLDER/0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1.17     the lease as JSON, without body, headers and history
//
// A help, not a promise, and so nothing is synced: an entry that is missing costs a second delivery, one too many a
// question to the broker, whose leases and tokens decide.

#pragma once

#include <string>
#include <vector>

#include "bide/lease.h"
#include "bide/result.h"

namespace bide::server {

class AcceptedBook {
 public:
  // An empty folder: nothing is kept. It is made when there is something to keep.
  explicit AcceptedBook(std::string folder) : folder_(std::move(folder)) {}

  // As old as they are by now. What cannot be read is removed.
  std::vector<Lease> read() const;
  // kIoError: it is not kept.
  Status add(Lease lease) const;
  void remove(const LeaseRef& lease) const;

 private:
  std::string path_of(const LeaseRef& lease) const;

  const std::string folder_;
};

}  // namespace bide::server
