// SHA-256 and HMAC-SHA256.

#pragma once

#include <string>
#include <string_view>

#include "bide/job_id.h"

namespace bide::server {

// 32 bytes each.
std::string sha256(std::string_view text);
std::string hmac_sha256(std::string_view key, std::string_view text);

// A UUID of version 8 made of the SHA-256 of the text.
JobId id_from_hash(std::string_view text);

}  // namespace bide::server
