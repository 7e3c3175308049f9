#include "server/callbacks/lease_credentials.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/quote.h"
#include "platform/disk.h"
#include "platform/fatal.h"

namespace bide::server {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyBytes = 32;

std::string new_key() {
  std::array<unsigned char, kKeyBytes> bytes{};
  platform::require(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "the system gives random bytes");
  return std::string(bytes.begin(), bytes.end());
}

std::string hex(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::optional<std::string> read_key(platform::Disk& disk, const std::string& path) {
  auto file = disk.open(path, platform::OpenMode::kReadOnly);
  if (!file) return std::nullopt;
  std::string key(kKeyBytes, '\0');
  const auto read = (*file)->read(0, key.data(), key.size());
  if (!read || *read != kKeyBytes) return std::nullopt;
  return key;
}

// Whole and synced under another name first: half a key would be one that nobody chose.
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
  // Before there is anything in it.
  std::error_code failed;
  fs::permissions(folder, fs::perms::owner_all, failed);
  if (failed) return Error{ErrorCode::kPermissionDenied, core::quoted(folder) + ": " + failed.message()};
  std::string key = new_key();
  if (Status written = write_key(disk, folder, path, key); !written) return written.error();
  return LeaseCredentials(std::move(key));
}

std::string LeaseCredentials::make(const LeaseRef& lease) const {
  std::string text(kLeaseCredentialPrefix);
  text.append(lease.id.to_string()).append(".").append(std::to_string(lease.token));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), digest.data(), &size);
  return text + "." + hex(digest.data(), size);
}

std::optional<LeaseRef> LeaseCredentials::check(std::string_view credential) const {
  if (!credential.starts_with(kLeaseCredentialPrefix)) return std::nullopt;
  const std::string_view rest = credential.substr(kLeaseCredentialPrefix.size());
  const std::size_t first = rest.find('.');
  const std::size_t second = first == std::string_view::npos ? first : rest.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto id = JobId::parse(rest.substr(0, first));
  const std::string_view number = rest.substr(first + 1, second - first - 1);
  LeaseRef lease;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), lease.token);
  if (!id || error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  lease.id = *id;
  // Made anew and compared as a whole: another way to write the same lease is not the same credential.
  const std::string wanted = make(lease);
  if (wanted.size() != credential.size()) return std::nullopt;
  if (CRYPTO_memcmp(wanted.data(), credential.data(), wanted.size()) != 0) return std::nullopt;
  return lease;
}

}  // namespace bide::server
