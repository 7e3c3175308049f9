// greet_owner: goes to the owner of a data directory, if there is one that listens.

#pragma once

#include <string>

#include "bide/broker.h"
#include "bide/result.h"
#include "brokers/shared/frame.h"
#include "platform/local_socket.h"

namespace bide::brokers::shared {

struct Greeted {
  platform::LocalSocket socket;
  FrameReader incoming;  // May hold more than the greeting.
  Capabilities capabilities;
};

// Waits at most so long for the owner's word.
//
// kUnavailable: nobody answers; there may be an owner who is about to. kNewerVersion: the owner's bide is newer.
// kUnsupported: it is older. kPermissionDenied: it is another user's.
Result<Greeted> greet_owner(const std::string& directory, Milliseconds at_most);

}  // namespace bide::brokers::shared
