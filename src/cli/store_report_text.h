// The report of an offline check, as people and programs read it.

#pragma once

#include <string>

#include "cli/json.h"
#include "engine/check/store_report.h"

namespace bide::cli {

JsonObject to_json(const engine::check::StoreReport& report);
std::string report_text(const engine::check::StoreReport& report);

}  // namespace bide::cli
