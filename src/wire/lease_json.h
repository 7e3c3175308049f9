// Leases as JSON: asking for them, getting them, keeping them alive.
//
//   lease request   {"queues":["mail",{"name":"images","weight":3}],"max":10,"wait":"30s","lease":"15s","worker":"w1",
//                    "poller":"...","kinds":["resize","order.*"]}
//   answer          {"leases":[{"id":...,"token":"17","attempt":1,"due":...,"kind":...,"body":...}],"held_ms":1200}
//   leave           {"poller":"..."}: its requests that wait are answered at once, and it is no worker any more; the
//                   leases that it has stay valid. Answered when that is so: POST /v1/leases/leave
//   extend          {"leases":[{"id":...,"token":"17","progress":{"part":0.4,"note":"page 12"}}]}   progress where there is some
//   answer          {"leases":[{"id":...,"token":"17","lost":false,"cancel_requested":false}]}
//   save            {"id":...,"token":"17","body":{"step":2}}   or body_text, body_base64
//   step            {"id":...,"token":"17","name":"charge","result":"ch_1"}   or result_base64
//   answer          {}
//
// A token is a string of digits, since not every language has whole numbers of 64 bits; a number is read too.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/broker.h"
#include "bide/lease.h"
#include "wire/job_json.h"
#include "wire/problem.h"

namespace bide::wire {

struct LeaseRequest {
  std::vector<QueueShare> queues = {};  // Empty when read: {"default"}.
  int max = 1;                          // 1 to kMostLeases.
  Milliseconds wait{0};                 // How long to wait for the first one; at most kLongestWait.
  Milliseconds lease{15'000};           // kShortestLease to kLongestLease.
  std::string worker = {};
  // Requests of one name are one worker to the broker, until it leaves or is not heard of again.
  std::string poller = {};
  std::vector<std::string> kinds = {};  // Patterns as of events, sorted when read. Empty: all.
};

// A new body for a job that is being run.
struct SaveRequest {
  LeaseRef lease = {};
  std::string body = {};
};

struct StepRequest {
  LeaseRef lease = {};
  Step step = {};
};

struct Extension {
  LeaseRef lease = {};
  std::optional<Progress> progress = {};
};

inline constexpr int kMostLeases = 4096;
inline constexpr Milliseconds kLongestWait{5 * 60 * 1000};
inline constexpr Milliseconds kShortestLease{100};
inline constexpr Milliseconds kLongestLease{24 * 60 * 60 * 1000};
inline constexpr std::size_t kMostQueues = 256;
inline constexpr std::size_t kMostKinds = 500;
inline constexpr std::size_t kMostItems = 10'000;  // Of a batch.

template <>
std::span<const Field<LeaseRef>> rows_of<LeaseRef>();
template <>
std::span<const Field<Extended>> rows_of<Extended>();
template <>
std::span<const Field<Extension>> rows_of<Extension>();

std::optional<Problem> read_lease_request(std::string_view body, LeaseRequest& request);
std::string lease_request_json(const LeaseRequest& request);

// `waited` is added to the age of each. `held` is how long the request has been here: what else it took, it was on its
// way.
std::string leases_json(const std::vector<Lease>& leases, Milliseconds waited = Milliseconds(0),
                        Milliseconds held = Milliseconds(0));
Result<std::vector<Lease>> read_leases(std::string_view body, Milliseconds* held = nullptr);

std::optional<Problem> read_leave_request(std::string_view body, std::string& poller);
std::string leave_request_json(std::string_view poller);

std::optional<Problem> read_extend_request(std::string_view body, std::vector<Extension>& extensions);
std::string extend_request_json(const std::vector<Extension>& extensions);
std::string extended_json(const std::vector<LeaseRef>& leases, const std::vector<Extended>& answers);
Result<std::vector<Extended>> read_extended(std::string_view body);

std::optional<Problem> read_save_request(std::string_view body, SaveRequest& request);
std::string save_request_json(const SaveRequest& request);

std::optional<Problem> read_step_request(std::string_view body, StepRequest& request);
std::string step_request_json(const StepRequest& request);

}  // namespace bide::wire
