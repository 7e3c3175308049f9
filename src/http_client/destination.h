// Destination: where a request goes, read from its URL and checked before anything is sent.

#pragma once

#include <string>

#include "bide/result.h"
#include "http_client/http_request.h"

namespace bide::http_client {

struct Destination {
  std::string host = {};        // Without the brackets of a numeric IPv6 address.
  std::string key = {};         // Requests with the same key share connections and their number is bounded together.
  std::string connect_to = {};  // As CURLOPT_CONNECT_TO wants it; empty: wherever the host is.
};

// kInvalidArgument: the message says what is wrong with the request, without its query.
Result<Destination> destination_of(const HttpRequest& request);

}  // namespace bide::http_client
