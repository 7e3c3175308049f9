// CallbackOptions: [callbacks] of the configuration file, and what a job may say about callbacks under it: where its body
// is delivered (bide-callback), who is notified of its end (bide-on-done), which queue gets its result
// (bide-reply-queue).

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "server/callbacks/address_policy.h"
#include "server/callbacks/lease_credentials.h"
#include "wire/problem.h"

namespace bide::server {

struct CallbackOptions {
  AddressPolicy policy = {};  // Off: nothing is delivered, and jobs with a callback are refused.
  // Their jobs are delivered by the server, not leased by workers. The first gets jobs with a callback that name none,
  // and notifications of finished jobs.
  std::vector<std::string> queues = {"callbacks"};

  // whsec_ and base64 of 24 to 64 bytes. Each signs, so that one can be replaced while both are known. Empty:
  // deliveries are not signed.
  std::vector<std::string> secrets = {};
  // By host, in place of the above: so that one receiver cannot sign for another.
  std::map<std::string, std::vector<std::string>> secrets_by_host = {};

  int concurrency = 64;  // Deliveries under way.
  int per_host = 8;      // Of them to one host and port, at most; fewer while it does not keep up.
  int per_address = 16;  // To one address, and to all names below one domain.
  int accepted = 10'000;  // Answered 202 and not settled yet; no more are delivered beyond it.
  std::string accepted_folder = {};  // Where they are stored for the next process. Empty: nowhere.
  // Makes the credential that a receiver settles its lease with. Null: it needs a token of its own.
  std::shared_ptr<const LeaseCredentials> lease_credentials = {};
  std::shared_ptr<const OwnListeners> own_listeners = {};  // May be null.
  std::size_t hosts = 1'000;  // Whose failures are remembered; of more, the least recently used are dropped.

  Milliseconds connect_within{5'000};
  Milliseconds answer_within{30'000};
  std::size_t answer_limit = 64 * 1024;              // Bytes of the answer, which becomes the job's result.
  Milliseconds longest_retry_after{60 * 60 * 1000};  // A longer Retry-After counts as this.
  Milliseconds lease{30'000};

  int failures_to_open = 5;             // The circuit breaker of a host opens after so many failures in a row,
  Milliseconds shortest_pause{5'000};   // for so long at first; the pause doubles each time the probe fails,
  Milliseconds longest_pause{300'000};  // up to this.

  std::size_t log_entries = 1'000;           // Deliveries that can be listed and replayed.
  std::size_t log_bytes = 16 * 1024 * 1024;  // Of the jobs kept for replay.
};

// kInvalidArgument names the setting.
Status validate(const CallbackOptions& options);

// The queue of a job with a callback that names none.
const std::string& callback_queue(const CallbackOptions& options);
// The server delivers the jobs of this queue.
bool is_pushed(const CallbackOptions& options, std::string_view queue);

// Checked before a job is enqueued:
//
//   callback_address_blocked   the URL, by the rule that the text names
//   invalid_callback           a callback in a queue whose jobs are leased by workers; a reply into a pushed queue
//   invalid_header             a job with a callback has a header that HTTP cannot carry
//   invalid_queue_name         the reply queue
//   invalid_kind_name          "<kind>.result", the kind of the reply, would be too long
std::optional<wire::Problem> find_callback_problem(const CallbackOptions& options, const Job& job);

}  // namespace bide::server
