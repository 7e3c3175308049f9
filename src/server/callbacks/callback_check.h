// What a job says about callbacks, checked when it is created: where its body is delivered (bide-callback), who is told
// when it is done (bide-on-done), and which queue gets its result (bide-reply-queue).

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "server/callbacks/callback_options.h"
#include "wire/problem.h"

namespace bide::server {

// Where a job with a callback goes when its creator named no queue.
const std::string& callback_queue(const CallbackOptions& options);
// The server delivers the jobs of this queue itself.
bool is_pushed(const CallbackOptions& options, std::string_view queue);

// The first thing wrong with it, to be asked before the job is enqueued. A job without any of these headers is fine.
//
//   callback_address_blocked   the URL, by the rule that the text names
//   invalid_callback           a callback in a queue whose jobs are leased by workers; a reply into one that is
//   delivered invalid_queue_name         the reply queue invalid_kind_name          "<kind>.result", the kind of the
//   reply, would be too long
std::optional<wire::Problem> find_callback_problem(const CallbackOptions& options, const Job& job);

}  // namespace bide::server
