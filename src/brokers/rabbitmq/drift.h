// Drift: what it means for jobs when something on the server is not as bide wants it, and what to do about it.

#pragma once

#include <string>

#include "brokers/rabbitmq/examine.h"

namespace bide::brokers::rabbitmq {

// "x-overflow is none instead of 'reject-publish': when the queue is full the oldest jobs are dropped".
std::string describe(const Difference& difference);
std::string remedy_for(const Difference& difference);

}  // namespace bide::brokers::rabbitmq
