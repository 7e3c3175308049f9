// An audit as people and programs read it.

#pragma once

#include <string>

#include "bide/inspector.h"
#include "cli/json.h"

namespace bide::cli {

JsonObject to_json(const AuditReport& report);
std::string audit_text(const AuditReport& report);

}  // namespace bide::cli
