#include "cli/statuses.h"

#include <cstdio>
#include <string>

#include "cli/failure.h"
#include "cli/json.h"

namespace bide::cli {

int print_statuses(const Invocation& call, std::string_view verb, const std::vector<JobId>& ids,
                   const std::vector<Status>& statuses) {
  int exit_code = kOk;
  JsonArray json;
  for (std::size_t i = 0; i < ids.size() && i < statuses.size(); ++i) {
    const std::string id = ids[i].to_string();
    JsonObject line;
    line.add("id", id).add("ok", statuses[i].has_value());
    if (statuses[i]) {
      if (!call.json()) std::printf("%s %s\n", std::string(verb).c_str(), id.c_str());
    } else {
      const Error& error = statuses[i].error();
      line.add("code", to_string(error.code)).add("error", error.message);
      std::fprintf(stderr, "bide: error: %s\n", error.message.c_str());
      if (exit_code == kOk) exit_code = exit_code_of(error.code);
    }
    json.add(line);
  }
  if (call.json()) std::puts(JsonObject().add("jobs", json).text().c_str());
  return exit_code;
}

}  // namespace bide::cli
