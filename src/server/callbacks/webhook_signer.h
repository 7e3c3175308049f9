// WebhookSigner: signs deliveries as Standard Webhooks specifies.
//
//   webhook-id: 0190...                    the same for every attempt, so that a receiver can detect repetitions
//   webhook-timestamp: 1700000000          seconds; a receiver refuses old ones
//   webhook-signature: v1,K5oZ... v1,9f..  one for each secret: base64(HMAC-SHA256(secret, "id.timestamp.body"))
//
// Secrets are written whsec_ and base64. They are never repeated in an error.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"

namespace bide::server {

class WebhookSigner {
 public:
  WebhookSigner() = default;  // Signs nothing.
  // kInvalidArgument names the secret by its position.
  static Result<WebhookSigner> make(const std::vector<std::string>& secrets,
                                    const std::map<std::string, std::vector<std::string>>& by_host = {});

  // The value of webhook-signature; empty when there is no secret for the host.
  std::string sign(std::string_view host, std::string_view id, std::int64_t timestamp_s, std::string_view body) const;

 private:
  std::vector<std::string> keys_;  // The bytes.
  std::map<std::string, std::vector<std::string>, std::less<>> by_host_;
};

}  // namespace bide::server
