// HeldDelivery: one lease in the hands of the Deliverer, from its arrival until the broker has confirmed its outcome.
//
//   waiting ──► sending ──► settling ──► gone
//      │           └──202──► accepted ──settled by the receiver──► gone
//      └── returned: settling    └──── time limit: settling

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bide/lease.h"
#include "http_client/http_client.h"
#include "server/callbacks/callback_url.h"
#include "server/callbacks/host_line.h"

namespace bide::server {

class HeldDelivery {
 public:
  enum class State : std::uint8_t { kWaiting, kSending, kAccepted, kSettling };
  using Key =
      std::pair<JobId, std::uint64_t>;  // A job that was lost may come again while its old request is under way.

  HeldDelivery(Lease given, Moment now, Milliseconds lease_time)
      : lease(std::move(given)),
        received(now),
        deadline(now - lease.age + lease.job.time_limit),
        term(lease_time),
        asked(now),
        granted(now) {}

  Key key() const { return {lease.job.id, lease.token}; }
  LeaseRef ref() const { return {lease.job.id, lease.token}; }

  Lease lease;
  const Moment received;
  const Moment deadline;    // Of the attempt: the job's time limit.
  const Milliseconds term;  // For so long a lease lasts that is not extended.
  State state = State::kWaiting;
  bool lost = false;     // The outcome would be refused.
  bool refused = false;  // It was, as not valid: once is enough.
  bool kept = false;     // In the AcceptedBook.

  CallbackUrl url = {};
  http_client::HttpClient::Ticket ticket = 0;
  Moment sent = {};
  Time sent_at = {};

  Moment asked;    // When the newest extension was asked for,
  Moment granted;  // and when the newest that was granted had been.

  std::optional<Settlement> settlement = {};  // While settling.
  Moment settle_at = {};                      // Not before.
  bool settle_sent = false;
};

}  // namespace bide::server
