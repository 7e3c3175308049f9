// connect_to_owner: connects to the process that owns a data directory, and exchanges the hello frames.

#pragma once

#include <string>

#include "bide/broker.h"
#include "bide/result.h"
#include "brokers/shared/frame.h"
#include "platform/local_socket.h"

namespace bide::brokers::shared {

struct OwnerConnection {
  platform::LocalSocket socket;
  FrameReader incoming;  // May hold more than the handshake.
  Capabilities capabilities;
};

// Waits at most so long for the hello of the owner.
//
// kUnavailable: nobody answers; there may be an owner who is about to. kNewerVersion: the owner's bide is newer.
// kUnsupported: it is older. kPermissionDenied: it is another user's.
Result<OwnerConnection> connect_to_owner(const std::string& directory, Milliseconds at_most);

}  // namespace bide::brokers::shared
