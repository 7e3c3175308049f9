// EDN: Clojure data as text. The body of a job that comes from async-worker, or goes there.
//
//   {:order 17, :lines ["a" "b"], :paid? true}
//
// All of EDN is read except big numbers (1N, 1M), ratios and unknown tags. Two tags are bide's own: #bide/bytes "00ff"
// is a byte array, #bide/nippy "..." a value that has no meaning here, as it was on the wire. Both in hexadecimal.

#pragma once

#include <string>
#include <string_view>

#include "bide/result.h"
#include "brokers/rabbitmq/compat/clojure_value.h"

namespace bide::brokers::rabbitmq::compat {

// On one line. Reads back to the same value, except that a text that is not UTF-8 stays as it is.
std::string to_edn(const ClojureValue& value);

// kInvalidArgument: what is wrong, and where.
Result<ClojureValue> parse_edn(std::string_view text);

}  // namespace bide::brokers::rabbitmq::compat
