// EnqueueOptions: what can be said about a job besides its kind and its body. Every field has a default:
//
//   client.enqueue("resize", png, {.queue = "images", .delay = 5min});

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "bide/job.h"
#include "bide/pressure.h"

namespace bide {

struct EnqueueOptions {
  std::string queue = "default";
  Milliseconds delay{0};                // Counted from acceptance, by the broker's clock.
  std::optional<Time> due = {};         // Or a time of the wall clock. Giving both is an error.
  std::optional<Time> expires = {};     // Not started by then: dead, as expired.
  Milliseconds time_limit{30 * 60 * 1000};  // For one attempt.
  int priority = 0;                     // -100 to 100; higher runs first.
  RetryPolicy retry = {};
  std::string unique_key = {};          // Not empty: at most one live job with this key.
  Milliseconds unique_for{0};           // Held at least so long, whatever becomes of the job.
  OnConflict on_conflict = OnConflict::kRefuse;
  std::string group = {};               // Shares the limits that its queue has for each group.
  std::vector<JobId> after = {};        // Waits until all of these are done.
  AfterDeath after_death = AfterDeath::kHold;
  JobId flow = {};                      // Not nil: shown, cancelled and replayed with the others of this flow.
  JobId id = {};                        // Given: enqueuing it again is harmless.
  std::string content_type = {};        // Empty: what the body's type says, otherwise application/octet-stream.
  Headers headers = {};
  std::optional<PressurePolicy> pressure = {};  // When the broker wants less. Empty: as the client.
};

Job make_job(std::string_view kind, std::string body, const EnqueueOptions& options);

}  // namespace bide
