// AsyncWorkerMessage: a job as async-worker publishes it, a map in Nippy:
//
//   {:job-name :send-mail, :args {...}, :current-iteration 0, :retry-max 5, :retry-timeout-ms 1000}
//
// A copy for the next attempt differs from the original in the number of :current-iteration and in nothing else: other
// keys and values stay byte for byte what they were, also those that have no meaning here.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "brokers/rabbitmq/compat/clojure_value.h"

namespace bide::brokers::rabbitmq::compat {

struct AsyncWorkerMessage {
  std::string job_name = {};              // Without the colon.
  std::optional<ClojureValue> args = {};  // Nothing: not understood; see args_nippy.
  std::string args_nippy = {};            // As on the wire, with a header of its own.
  std::int64_t current_iteration = 0;     // Attempts that have failed.
  std::optional<std::int64_t> retry_max = {};
  std::optional<std::int64_t> retry_timeout_ms = {};

  std::string data = {};           // The whole map, without header.
  std::size_t iteration_at = 0;    // Where the value of :current-iteration is in it ...
  std::size_t iteration_size = 0;  // ... and how long.

  // Failed attempts are followed by another one so often.
  std::int64_t retries() const { return retry_max.value_or(0); }
  // The wait behind the failed attempt of this iteration. 0 when there is none.
  std::int64_t delay_ms() const;
};

// kInvalidArgument, kUnsupported: why it is not understood.
Result<AsyncWorkerMessage> parse_async_worker_message(std::string_view body);

// The body with another number. Packed ones are written plain, which every Nippy reads.
std::string with_iteration(const AsyncWorkerMessage& message, std::int64_t iteration);

// The body of a new job. `args_nippy` is one value with a header.
std::string async_worker_body(std::string_view job_name, std::string_view args_nippy, std::int64_t retry_max,
                              std::int64_t retry_timeout_ms);

}  // namespace bide::brokers::rabbitmq::compat
