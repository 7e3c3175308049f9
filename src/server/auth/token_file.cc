#include "server/auth/token_file.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/url_escape.h"
#include "platform/descriptor.h"
#include "platform/disk.h"

namespace bide::server {
namespace {

using platform::Descriptor;
using platform::Purpose;
using platform::system_error;

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::string_view kScheme = "bide:";

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status check_privacy(const struct stat& found, const std::string& path) {
  if (!S_ISREG(found.st_mode)) return Error{ErrorCode::kInvalidArgument, path + " is not a file"};
  if ((found.st_mode & 077) != 0) {
    return Error{ErrorCode::kPermissionDenied, "others may read or change " + path + ": run chmod 600 " + path};
  }
  const uid_t me = ::geteuid();
  if (found.st_uid != me && found.st_uid != 0 && me != 0) {
    return Error{ErrorCode::kPermissionDenied, path + " belongs to somebody else (user " +
                                                   std::to_string(found.st_uid) + "), who could let anybody in"};
  }
  return {};
}

Result<std::string> read_all(int descriptor, const std::string& path) {
  std::string text;
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(errno, "read", path);
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMostBytes)
      return Error{ErrorCode::kInvalidArgument, path + " is too large for a file of tokens"};
  }
}

Status write_all(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_error(errno, "write", path);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

// The owner of what is there, or of the place where it will be.
Status give_to_owner(int descriptor, const std::string& path) {
  struct stat place {};
  if (::geteuid() != 0) return {};
  if (::stat(path.c_str(), &place) != 0 && ::stat(directory_of(path).c_str(), &place) != 0) {
    return system_error(errno, "look at", path);
  }
  if (::fchown(descriptor, place.st_uid, place.st_gid) != 0) return system_error(errno, "change the owner of", path);
  return {};
}

Status write_new(const std::string& path, const std::string& temporary, std::string_view text) {
  const Descriptor file = Descriptor::open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file.valid()) return system_error(errno, "create", temporary, Purpose::kCreate);
  if (const Status owned = give_to_owner(file.get(), path); !owned) return owned;
  if (const Status written = write_all(file.get(), text, temporary); !written) return written;
  if (::fsync(file.get()) != 0) return system_error(errno, "sync", temporary);
  return {};
}

}  // namespace

std::optional<std::string> place_in_store(std::string_view broker_url, std::string_view name) {
  if (!broker_url.starts_with(kScheme)) return std::nullopt;
  broker_url.remove_prefix(kScheme.size());
  const auto directory = core::unescape_url(broker_url.substr(0, broker_url.find('?')));
  if (!directory || directory->empty()) return std::nullopt;
  return *directory + (directory->ends_with('/') ? "" : "/") + std::string(name);
}

FileStamp stamp_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  const auto nanoseconds = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  return {.device = found.st_dev,
          .inode = found.st_ino,
          .size = static_cast<std::uint64_t>(found.st_size),
          .modified_ns = nanoseconds(found.st_mtim),
          .changed_ns = nanoseconds(found.st_ctim)};
}

Result<TokenList> read_tokens(const std::string& path) {
  const Descriptor file = Descriptor::open(path, O_RDONLY | O_NONBLOCK);
  if (!file.valid() && errno == ENOENT) return TokenList();
  if (!file.valid()) return system_error(errno, "read", path);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return system_error(errno, "look at", path);
  if (const Status is_private = check_privacy(found, path); !is_private) return is_private.error();
  const Result<std::string> text = read_all(file.get(), path);
  if (!text) return text.error();
  return parse_tokens(*text, path);
}

Status change_tokens(const std::string& path, const std::function<Status(TokenList&)>& change) {
  const std::string directory = directory_of(path);
  const Descriptor lock = Descriptor::open(directory, O_RDONLY | O_DIRECTORY);
  if (!lock.valid()) return system_error(errno, "open", directory, Purpose::kCreate);
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_error(errno, "lock", directory);
  }
  Result<TokenList> tokens = read_tokens(path);
  if (!tokens) return tokens.error();
  if (Status changed = change(*tokens); !changed) return changed;

  // Nobody else has it: we hold the lock. One that is left over is of a process that died.
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  if (Status written = write_new(path, temporary, format_tokens(*tokens)); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return platform::rename_error(errno, temporary, path);
  if (::fsync(lock.get()) != 0) return system_error(errno, "sync", directory);
  return {};
}

}  // namespace bide::server
