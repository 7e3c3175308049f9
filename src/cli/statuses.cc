#include "cli/statuses.h"

#include <cstdio>
#include <string>

#include "cli/failure.h"
#include "cli/json.h"

namespace bide::cli {

int print_statuses(const Invocation& call, std::string_view verb, const std::vector<JobId>& ids,
                   const std::vector<Status>& statuses, const Warnings* warnings) {
  std::vector<const Error*> errors;
  JsonArray json;
  for (std::size_t i = 0; i < ids.size() && i < statuses.size(); ++i) {
    const std::string id = ids[i].to_string();
    JsonObject line;
    line.add("id", id).add("ok", statuses[i].has_value());
    if (statuses[i]) {
      if (!call.json()) say(std::string(verb) + " " + id);
    } else {
      const Error& error = statuses[i].error();
      line.add("code", to_string(error.code)).add("error", error.message);
      errors.push_back(&error);
    }
    json.add(line);
  }
  if (call.json()) {
    JsonObject object;
    object.add("jobs", json);
    if (warnings != nullptr) object.add("warnings", warnings->to_json());
    std::puts(object.text().c_str());
  }
  if (errors.empty()) return kOk;
  std::fflush(stdout);
  // All but the first, which ends the command.
  for (std::size_t i = 1; i < errors.size() && !call.json(); ++i) tell("error: " + errors[i]->message);
  const std::string others =
      errors.size() > 1 && call.json() ? " (and " + std::to_string(errors.size() - 1) + " more)" : "";
  fail({errors.front()->code, errors.front()->message + others});
}

}  // namespace bide::cli
