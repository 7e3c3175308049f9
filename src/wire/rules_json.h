// Rules of queues as JSON.
//
//   rules   {"queue":"mail","at_once":50,"rate":"100/s","group_at_once":3,"group_rate":"10/s,burst=20","fair":true,
//            "weights":{"tenant:42":3},"ageing_ms":60000,"most_jobs":0,"most_bytes":0,"oldest_ms":0}
//
// A rate is a text (core/rate_text.h), an object, such as {"count":10,"period":"1s","burst":20}, or null: no limit.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/queue_rules.h"
#include "wire/fields.h"
#include "wire/problem.h"

namespace bide::wire {

template <>
std::span<const Field<QueueRules>> rows_of<QueueRules>();

// The queue is named elsewhere.
std::optional<Problem> read_rules(std::string_view body, QueueRules& rules);
std::string rules_request_json(const QueueRules& rules);
std::string rules_json(const QueueRules& rules);
std::string rules_list_json(const std::vector<QueueRules>& rules);
Result<std::vector<QueueRules>> read_rules_list(std::string_view body);

}  // namespace bide::wire
