#include "server/callbacks/webhook_signer.h"

#include <utility>

#include "core/quote.h"
#include "core/text.h"
#include "server/http/digest.h"

namespace bide::server {

namespace {

constexpr std::string_view kSecretPrefix = "whsec_";

Result<std::vector<std::string>> read_keys(const std::vector<std::string>& secrets, const std::string& where) {
  std::vector<std::string> keys;
  for (const std::string& secret : secrets) {
    auto key = secret.starts_with(kSecretPrefix)
                   ? core::from_base64(std::string_view(secret).substr(kSecretPrefix.size()))
                   : std::nullopt;
    if (!key || key->size() < 24 || key->size() > 64) {
      return Error{ErrorCode::kInvalidArgument, "secret " + std::to_string(keys.size() + 1) + where +
                                                    " is not whsec_ followed by base64 of 24 to 64 bytes"};
    }
    keys.push_back(std::move(*key));
  }
  return keys;
}

}  // namespace

Result<WebhookSigner> WebhookSigner::make(const std::vector<std::string>& secrets,
                                          const std::map<std::string, std::vector<std::string>>& by_host) {
  WebhookSigner signer;
  auto keys = read_keys(secrets, " of the callbacks");
  if (!keys) return keys.error();
  signer.keys_ = std::move(*keys);
  for (const auto& [host, of_host] : by_host) {
    auto read = read_keys(of_host, " of the callbacks to " + core::quoted(host));
    if (!read) return read.error();
    signer.by_host_[host] = std::move(*read);
  }
  return signer;
}

std::string WebhookSigner::sign(std::string_view host, std::string_view id, std::int64_t timestamp_s,
                                std::string_view body) const {
  const auto own = by_host_.find(host);
  const std::vector<std::string>& keys = own == by_host_.end() ? keys_ : own->second;
  if (keys.empty()) return {};
  std::string text;
  text.reserve(id.size() + 24 + body.size());
  text.append(id).append(".").append(std::to_string(timestamp_s)).append(".").append(body);
  std::string signature;
  for (const std::string& key : keys) {
    if (!signature.empty()) signature += ' ';
    signature += "v1," + core::to_base64(hmac_sha256(key, text));
  }
  return signature;
}

}  // namespace bide::server
