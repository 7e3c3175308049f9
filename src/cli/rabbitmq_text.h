// What `bide rabbitmq` says, for people and for programs.

#pragma once

#include <string>
#include <vector>

#include "brokers/rabbitmq/doctor.h"
#include "brokers/rabbitmq/gc.h"
#include "brokers/rabbitmq/plan.h"
#include "cli/json.h"

namespace bide::cli {

JsonObject to_json(const brokers::rabbitmq::Plan& plan);
std::string plan_text(const brokers::rabbitmq::Plan& plan);

JsonObject to_json(const std::vector<brokers::rabbitmq::Finding>& findings);
std::string findings_text(const std::vector<brokers::rabbitmq::Finding>& findings);

JsonObject to_json(const std::vector<brokers::rabbitmq::GcEntry>& entries, bool dry_run);
std::string gc_text(const std::vector<brokers::rabbitmq::GcEntry>& entries, bool dry_run);

}  // namespace bide::cli
