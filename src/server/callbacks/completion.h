// Completion, the part of the server: the body that the receiver of an on_done gets, and the jobs that tell of an end for
// a broker that does not make them itself (core/completion.h).
//
//   {"id":...,"kind":...,"queue":...,"state":"done","attempts":1,"result":...}
//   {"id":...,"kind":...,"queue":...,"state":"dead","attempts":3,"reason":...,"error":...}

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bide/job.h"
#include "bide/lease.h"

namespace bide::server {

// What is delivered in place of the body of a bide.on_done job, as application/json. Nothing: it is another job.
std::optional<std::string> on_done_body(const Job& job);

// With the jobs that tell of the end added to its effects, when the outcome is an end. `job` need not have its body.
// They have the same ids each time: a settlement that is sent twice does not tell twice.
Settlement with_completion(Settlement settlement, const Job& job, std::uint32_t attempts);

}  // namespace bide::server
