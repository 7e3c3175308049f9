// ask: a question to the Inspector, answered or thrown as a Failure.
//
//   const AuditReport report = ask<AuditReport>([&](auto done) { inspector.audit(std::move(done)); });

#pragma once

#include <utility>

#include "bide/wait.h"
#include "cli/failure.h"

namespace bide::cli {

template <class T, class Start>
T ask(Start&& start) {
  return take(wait<T>(std::forward<Start>(start)));
}

}  // namespace bide::cli
