#include "platform/disk.h"

#include <cerrno>
#include <string>
#include <system_error>

namespace bide::platform {
namespace {

ErrorCode code_for(int error_number, Purpose purpose) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ErrorCode::kDiskFull;
    // Of the process or the machine, not of the disk: it passes.
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::kOverloaded;
    case EOPNOTSUPP:
    case ENOSYS:
      return ErrorCode::kUnsupported;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermissionDenied;
    case ENOENT:
    case ENOTDIR:
      return purpose == Purpose::kCreate ? ErrorCode::kCannotCreate : ErrorCode::kNotFound;
    case EEXIST:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return purpose == Purpose::kCreate ? ErrorCode::kCannotCreate : ErrorCode::kIoError;
    default:
      return ErrorCode::kIoError;
  }
}

std::string sentence(std::string_view action, std::string_view path, int error_number) {
  std::string text = "cannot ";
  text.append(action).append(" ").append(path).append(": ").append(std::generic_category().message(error_number));
  return text;
}

}  // namespace

Error system_error(int error_number, std::string_view action, std::string_view path, Purpose purpose) {
  return Error{code_for(error_number, purpose), sentence(action, path, error_number)};
}

Error rename_error(int error_number, std::string_view from, std::string_view to) {
  std::string both(from);
  both.append(" to ").append(to);
  return Error{code_for(error_number, Purpose::kUse), sentence("rename", both, error_number)};
}

}  // namespace bide::platform
