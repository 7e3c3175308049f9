// CallbackOptions: everything that can be said about the delivery of callbacks. [callbacks] of the configuration file.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bide/job.h"
#include "server/callbacks/address_policy.h"
#include "server/callbacks/lease_credentials.h"
#include "server/callbacks/own_listeners.h"

namespace bide::server {

struct CallbackOptions {
  AddressPolicy policy = {};  // Off: nothing is delivered, and jobs with a callback are refused.
  // Their jobs are delivered by the server, not leased by workers. The first is where jobs with a callback go that name
  // none, and what is told when a job is done.
  std::vector<std::string> queues = {"callbacks"};

  // whsec_ and base64 of 24 to 64 bytes. Each signs, so that one can be replaced while both are known. Empty:
  // deliveries are not signed.
  std::vector<std::string> secrets = {};
  // By host, in place of the above: so that one receiver cannot sign for another.
  std::map<std::string, std::vector<std::string>> secrets_by_host = {};

  int concurrency = 64;  // Deliveries under way.
  int per_host = 8;      // Of them to one host and port, at most; less while it does not keep up.
  int per_address = 16;  // To one address, and to the names below one domain: nobody takes every place by many names.
  int accepted = 10'000;  // Answered 202 and not settled yet; beyond it no more are delivered.
  std::string accepted_folder = {};  // Where they are kept for the next process. Empty: it does not know of them.
  // Makes what a receiver settles its lease with. Null: it needs a token of its own.
  std::shared_ptr<const LeaseCredentials> lease_credentials = {};
  // Where no callback may go, whatever the policy says. Null: nothing is ours.
  std::shared_ptr<const OwnListeners> own_listeners = {};
  std::size_t hosts = 1'000;  // Of which failures are remembered; of more, those longest quiet are forgotten.

  Milliseconds connect_within{5'000};
  Milliseconds answer_within{30'000};
  std::size_t answer_limit = 64 * 1024;  // Of the answer, which becomes the job's result.
  Milliseconds longest_retry_after{60 * 60 * 1000};  // A receiver cannot ask for more.
  Milliseconds lease{30'000};

  int failures_to_open = 5;              // So many in a row, and nothing is sent to the host for a while ...
  Milliseconds shortest_pause{5'000};    // ... at first so long, then longer each time that it fails again ...
  Milliseconds longest_pause{300'000};   // ... up to this.

  std::size_t log_entries = 1'000;              // Deliveries that can be looked at and replayed.
  std::size_t log_bytes = 16 * 1024 * 1024;     // Of the bodies that are kept for it.
};

// kInvalidArgument names the setting.
Status validate(const CallbackOptions& options);

}  // namespace bide::server
