// The addresses of this machine's own network interfaces.

#pragma once

#include <vector>

#include "http_client/http_address.h"

namespace bide::http_client {

// As they are now, with port 0. Empty when the system does not tell.
std::vector<HttpAddress> local_addresses();

}  // namespace bide::http_client
