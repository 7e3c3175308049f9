// What a broker's answer to settle() says about one of the settlements.

#pragma once

#include <cstddef>
#include <vector>

#include "bide/result.h"

namespace bide::core {

// kUnconfirmed where the broker answered with too few.
inline Status status_at(const Result<std::vector<Status>>& statuses, std::size_t index) {
  if (!statuses) return statuses.error();
  if (index < statuses->size()) return (*statuses)[index];
  return Error{ErrorCode::kUnconfirmed, "the broker did not say what became of the settlement"};
}

// The lease is over: settled, or not ours any more. Otherwise settling can be tried again.
inline bool ends_lease(const Status& status) {
  return status || status.error().code == ErrorCode::kLeaseLost || status.error().code == ErrorCode::kNotFound;
}

}  // namespace bide::core
