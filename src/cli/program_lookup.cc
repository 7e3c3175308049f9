#include "cli/program_lookup.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cli/failure.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr std::string_view kDefaultPath = "/bin:/usr/bin";  // What glibc takes when there is no $PATH.

std::vector<std::string> candidates(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? kDefaultPath : std::string_view(path);
  std::vector<std::string> paths;
  for (;;) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string folder(left.substr(0, end));
    paths.push_back(folder.empty() ? name : folder + "/" + name);
    if (end == left.size()) return paths;
    left.remove_prefix(end + 1);
  }
}

}  // namespace

void require_program(const std::string& name) {
  if (name.empty()) fail_usage("--exec: the name of the program is empty");
  std::string found;
  for (const std::string& path : candidates(name)) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0) return;
    if (found.empty()) found = path;
  }
  if (found.empty()) {
    const bool path_given = name.find('/') != std::string::npos;
    throw Failure{kNotThere, "--exec: there is no program " + core::quoted(name) +
                                 (path_given ? "" : " in $PATH; a program in this folder is ./NAME") +
                                 "; for a command with spaces use --shell"};
  }
  throw Failure{kNotPermitted, "--exec: " + core::quoted(found) +
                                   " cannot be executed; it must be a file with the right to " +
                                   "execute it (chmod +x)"};
}

}  // namespace bide::cli
