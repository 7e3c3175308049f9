// Settlements as JSON: what attempts came to.
//
//   settle   {settlement}   or
//   {"settlements":[{"id":...,"token":"17","outcome":"done","result":{"size":3},"effects":[job]}]} answer
//   {"id":...,"token":"17","status":200}   or   {"settlements":[{"id":...,"token":"17","status":200}, {...,
//   "status":409,"problem":{...}}],
//             "settled":1,"failed":1}
//
// Outcomes:
//   done       result | result_text | result_base64, result_content_type
//   failed     error, fault ("failed", "timed_out"); body: the next attempt's. Again or dead by the job's retry policy.
//   retry      after | after_ms, error, fault; body. Again then, whatever the policy says.
//   dead       error, reason ("rejected" unless said), fault
//   returned   after | after_ms, note. Not charged.

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

// One of a batch: either a settlement, or what is wrong with it.
struct SettleItem {
  Settlement settlement = {};
  bool by_policy = false;  // outcome "failed": settlement.outcome is a RetryAt whose wait is yet to be decided.
  std::optional<Problem> problem = {};
};

struct SettleRequest {
  bool one = false;  // A single settlement, not a list of one.
  std::vector<SettleItem> items = {};
};

// A problem of the whole request; otherwise each item has its own or none.
std::optional<Problem> read_settle_request(std::string_view body, Time now, SettleRequest& request,
                                           std::string_view callback_queue = {});
void write(JsonWriter& out, const Settlement& settlement);  // One of the list.
std::string settle_request_json(const std::vector<Settlement>& settlements);

// What became of each item, in order.
std::string settled_json(const SettleRequest& request);
Result<std::vector<Status>> read_settled(std::string_view body);

}  // namespace bide::wire
