// The file in which the tokens of a server are kept. Only its owner may read it; it is replaced as a whole, so whoever
// reads it finds the old list or the new one.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "server/auth/token_list.h"

namespace bide::server {

// DIRECTORY/name for bide:DIRECTORY. For a broker without a directory there is no such place: nothing.
std::optional<std::string> place_in_store(std::string_view broker_url, std::string_view name);
inline std::optional<std::string> token_file_of(std::string_view broker_url) {
  return place_in_store(broker_url, "tokens");
}

// Changes whenever the file does.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
FileStamp stamp_of(const std::string& path);  // All zero when it is not there.

// A file that is not there has no tokens. kPermissionDenied: others than its owner may read or change it, or we may not
// read it. kInvalidArgument, kNewerVersion: see parse_tokens. kIoError.
Result<TokenList> read_tokens(const std::string& path);

// Reads the tokens, lets `change` do its work on them, and replaces the file, durably. Several at once come one after
// the other. When `change` fails, nothing is written. A new file gets the owner of the old one, or of its directory:
// root may make tokens for a server that is not root.
Status change_tokens(const std::string& path, const std::function<Status(TokenList&)>& change);

}  // namespace bide::server
