// LeaseCredentials: what a receiver shows to settle or extend the one lease that was delivered to it, and nothing else.
//
//   bide_lease.0190d6c0-8a5e-7f2a-9d0e-5b8a52f6f0c1.17.9f86d0...     job, token of the lease, HMAC-SHA256 of both
//
// It is good for as long as the lease: the broker refuses a token that is stale.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/lease.h"
#include "bide/result.h"

namespace bide::server {

inline constexpr std::string_view kLeaseCredentialPrefix = "bide_lease.";

class LeaseCredentials {
 public:
  // With the key in `folder`, which is made when it is not there and can be read by nobody else. Empty: a key that ends
  // with this process. kIoError, kDiskFull, kPermissionDenied, kCannotCreate.
  static Result<LeaseCredentials> open(const std::string& folder);

  std::string make(const LeaseRef& lease) const;
  // The lease it was made for; nothing when it was not made with this key.
  std::optional<LeaseRef> check(std::string_view credential) const;

 private:
  explicit LeaseCredentials(std::string key) : key_(std::move(key)) {}

  std::string key_;
};

}  // namespace bide::server
