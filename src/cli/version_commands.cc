// bide version.

#include <cstdio>
#include <string>

#include "cli/command_groups.h"
#include "cli/invocation.h"
#include "cli/json.h"
#include "cli/version.h"

namespace bide::cli {

namespace {

int print_version(const Invocation& call) {
  const std::string number(version());
  if (call.json()) {
    std::puts(JsonObject().add("version", number).add("compiler", __VERSION__).text().c_str());
  } else {
    std::printf("bide %s\n", number.c_str());
  }
  return 0;
}

}  // namespace

std::vector<Command> version_commands() {
  return {{.path = "version", .summary = "Say which bide this is", .flags = {kJsonFlag}, .run = print_version}};
}

}  // namespace bide::cli
