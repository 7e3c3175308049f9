// From a job that somebody wants to enqueue to what is published for it.

#pragma once

#include <cstdint>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_message.h"
#include "brokers/rabbitmq/publisher.h"

namespace bide::brokers::rabbitmq {

// The rules of every broker, and what this one cannot do: kUnsupported for unique keys.
Status check_job(const Job& job, Time now);

// A message that was sent, and one that the server returned. Ids alone are not enough: the same job may be sent to
// several queues, or twice.
bool is_same_publication(const AmqpMessage& sent, const AmqpMessage& returned);

// Of a job that is checked and has an id. Without a completion.
Publication first_publication(Job job, std::int64_t stamp, Time now);

}  // namespace bide::brokers::rabbitmq
