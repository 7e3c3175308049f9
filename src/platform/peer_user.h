// Which user the process at the other end of a connection belongs to, as far as this machine can tell.

#pragma once

#include <sys/types.h>

#include <optional>

namespace bide::platform {

// The socket is connected: a Unix socket, or TCP within this machine. Nothing when it is neither, or nobody can tell.
// Asks the kernel for TCP: not for every request.
std::optional<uid_t> peer_user(int socket);

}  // namespace bide::platform
