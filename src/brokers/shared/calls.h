// Calls: every call of Broker and Inspector as a frame, carried out on a broker of this process. The server does this
// for its clients, and a client that has become the owner for the calls it still has.

#pragma once

#include <functional>
#include <string_view>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "brokers/shared/frame.h"
#include "brokers/shared/wire.h"

namespace bide::brokers::shared {

// Writes the payload of an answer: a Result.
using Answer = std::function<void(Encoder&)>;
// Called once, on a thread of the broker.
using Reply = std::function<void(Answer)>;

template <class T>
Completion<T> replying(Reply reply) {
  return [reply = std::move(reply)](Result<T> result) {
    reply([kept = std::make_shared<Result<T>>(std::move(result))](Encoder& out) { put(out, *kept); });
  };
}

// False: there is no such call, or its payload is not one; nothing was done and reply will not be called.
bool execute(FrameType type, std::string_view payload, Broker& broker, Inspector& inspector, Reply reply);

// A watch lasts, and can be given up.
bool execute_watch(std::string_view payload, Inspector& inspector, Reply reply, GiveUp& give_up);

// Carrying it out a second time gives the same as once.
bool is_repeatable(FrameType type);
// Whether it changes no job: without an answer nothing has happened.
bool is_read_only(FrameType type);

}  // namespace bide::brokers::shared
