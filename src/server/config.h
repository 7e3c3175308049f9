// The configuration file: what a file in TOML says about the server. packaging/bide.toml has every key.
//
//   url = "bide:/var/lib/bide"
//   listen = ["127.0.0.1:7070"]
//
//   [auth]
//   token_file = "/var/lib/bide/tokens"
//
// A file is right as a whole or refused: an unknown key, a value of another type or out of its range are errors that
// say file:line:column, what is allowed, and which key was probably meant.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "server/server_options.h"

namespace bide::server {

// kInvalidArgument: the message begins with `path:line:column: `. kNotFound, kPermissionDenied, kIoError: it cannot be
// read.
Result<ServerOptions> read_configuration(const std::string& path);
Result<ServerOptions> parse_configuration(std::string_view text, std::string_view path);

// Sizes as people write them: 65536, 64KiB, 16MiB, 1GiB. kInvalidArgument.
Result<std::uint64_t> parse_size(std::string_view text);

}  // namespace bide::server
