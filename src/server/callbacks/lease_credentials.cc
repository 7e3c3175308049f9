#include "server/callbacks/lease_credentials.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/number_text.h"
#include "core/quote.h"
#include "core/text.h"
#include "platform/disk.h"
#include "platform/fatal.h"
#include "server/http/digest.h"

namespace bide::server {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCredentialPrefix = "bide_lease.";
constexpr std::size_t kKeyBytes = 32;

std::string new_key() {
  std::array<unsigned char, kKeyBytes> bytes{};
  platform::require(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "the system gives random bytes");
  return std::string(bytes.begin(), bytes.end());
}

std::optional<std::string> read_key(platform::Disk& disk, const std::string& path) {
  auto file = disk.open(path, platform::OpenMode::kReadOnly);
  if (!file) return std::nullopt;
  std::string key(kKeyBytes, '\0');
  const auto read = (*file)->read(0, key.data(), key.size());
  if (!read || *read != kKeyBytes) return std::nullopt;
  return key;
}

// Written and synced under another name first: half a key must never be read.
Status write_key(platform::Disk& disk, const std::string& folder, const std::string& path, const std::string& key) {
  const std::string draft = path + ".new";
  {
    auto file = disk.open(draft, platform::OpenMode::kCreate);
    if (!file) return file.error();
    if (Status written = (*file)->write(0, key); !written) return written;
    if (Status synced = (*file)->sync(); !synced) return synced;
  }
  if (Status renamed = disk.rename(draft, path); !renamed) return renamed;
  return disk.sync_directory(folder);
}

}  // namespace

Result<LeaseCredentials> LeaseCredentials::open(const std::string& folder) {
  if (folder.empty()) return LeaseCredentials(new_key());
  platform::Disk& disk = platform::real_disk();
  const std::string path = folder + "/key";
  if (auto key = read_key(disk, path)) return LeaseCredentials(std::move(*key));
  if (Status made = disk.make_directory(folder); !made) return made.error();
  std::error_code failed;
  fs::permissions(folder, fs::perms::owner_all, failed);
  if (failed) return Error{ErrorCode::kPermissionDenied, core::quoted(folder) + ": " + failed.message()};
  std::string key = new_key();
  if (Status written = write_key(disk, folder, path, key); !written) return written.error();
  return LeaseCredentials(std::move(key));
}

std::string LeaseCredentials::make(const LeaseRef& lease) const {
  std::string text(kCredentialPrefix);
  text.append(lease.id.to_string()).append(".").append(std::to_string(lease.token));
  return text + "." + core::to_hex(hmac_sha256(key_, text));
}

std::optional<LeaseRef> LeaseCredentials::check(std::string_view credential) const {
  if (!credential.starts_with(kCredentialPrefix)) return std::nullopt;
  const std::string_view rest = credential.substr(kCredentialPrefix.size());
  const std::size_t first = rest.find('.');
  const std::size_t second = first == std::string_view::npos ? first : rest.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto id = JobId::parse(rest.substr(0, first));
  const auto token = core::parse_integer<std::uint64_t>(rest.substr(first + 1, second - first - 1));
  if (!id || !token) return std::nullopt;
  const LeaseRef lease{*id, *token};
  // Compared as a whole: the same lease written in another way is not the same credential.
  const std::string wanted = make(lease);
  if (wanted.size() != credential.size()) return std::nullopt;
  if (CRYPTO_memcmp(wanted.data(), credential.data(), wanted.size()) != 0) return std::nullopt;
  return lease;
}

}  // namespace bide::server
