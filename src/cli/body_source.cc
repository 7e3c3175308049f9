#include "cli/body_source.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "bide/job.h"
#include "cli/failure.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

[[noreturn]] void fail_to_read(const std::string& name, int error) {
  const int exit_code = error == EACCES || error == EPERM ? kNotPermitted : error == EIO ? kInputOutput : kNotThere;
  throw Failure{exit_code, "cannot read the body from " + name + ": " + std::strerror(error)};
}

std::string read_all(int descriptor, const std::string& name) {
  std::string body;
  std::array<char, 64 * 1024> buffer;
  while (body.size() <= Limits::kBodyBytes) {
    const std::size_t wanted = std::min(buffer.size(), Limits::kBodyBytes + 1 - body.size());
    const ssize_t got = ::read(descriptor, buffer.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(name, errno);
    if (got == 0) return body;
    body.append(buffer.data(), static_cast<std::size_t>(got));
  }
  fail_usage("the body from " + name + " has more than " + std::to_string(Limits::kBodyBytes) +
             " bytes, which is the most; store it elsewhere and send its address");
}

}  // namespace

std::string read_body(const std::string& argument) {
  if (argument == "-") return read_all(STDIN_FILENO, "stdin");
  if (!argument.starts_with("@")) return argument;
  const std::string path = argument.substr(1);
  if (path.empty())
    fail_usage("BODY: after @ the name of a file is expected; a body that begins with @ comes by stdin (-)");
  const std::string name = core::quoted(path);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_to_read(name, errno);
  struct Close {
    int descriptor;
    ~Close() { ::close(descriptor); }
  } const close{descriptor};
  return read_all(descriptor, name);
}

}  // namespace bide::cli
