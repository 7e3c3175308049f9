// LeaseCredentials: bearer tokens with which a receiver may settle or extend the one lease that was delivered to it.
//
//   bide_lease.0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1.17.9f86d0...     job, token of the lease, HMAC-SHA256 of both
//
// Valid as long as the lease: the broker refuses a stale token.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/lease.h"
#include "bide/result.h"

namespace bide::server {

class LeaseCredentials {
 public:
  // Reads the key from `folder`, or creates it, readable by the owner only. Empty: a key for this process.
  // kIoError, kDiskFull, kPermissionDenied, kCannotCreate.
  static Result<LeaseCredentials> open(const std::string& folder);

  std::string make(const LeaseRef& lease) const;
  // Nothing when it was not made with this key.
  std::optional<LeaseRef> check(std::string_view credential) const;

 private:
  explicit LeaseCredentials(std::string key) : key_(std::move(key)) {}

  std::string key_;
};

}  // namespace bide::server
