// remove_prefix: deletes everything that bide may have declared under a prefix, with whatever is in it. For prefixes
// that belong to somebody who is done, such as a benchmark.

#pragma once

#include <string>
#include <vector>

#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"

namespace bide::brokers::rabbitmq {

// `queues` are the bide queues that were used. What is not there is no error.
Status remove_prefix(const Settings& settings, const std::vector<std::string>& queues);

}  // namespace bide::brokers::rabbitmq
