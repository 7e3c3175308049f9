#include "cli/open_client.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/failure.h"
#include "core/quote.h"

namespace bide::cli {

namespace {

constexpr std::string_view kEmbedded = "bide:";

// Commands that look around must not leave an empty store behind in a directory that was mistyped.
void require_store(const std::string& url) {
  // What is wrong with the URL itself is said by whoever opens it.
  if (!url.starts_with(kEmbedded) || url.starts_with("bide://")) return;
  const std::string_view directory = std::string_view(url).substr(kEmbedded.size(), url.find('?') - kEmbedded.size());
  if (directory.find('%') != std::string_view::npos) return;
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::path(directory), ignored)) return;
  throw Failure{kNotThere, "there is no store in " + core::quoted(directory) +
                               "; `bide enqueue` makes one, --url or BIDE_URL names another"};
}

}  // namespace

std::string url_of(const Invocation& call) {
  if (const auto url = call.value(kUrlFlag.name)) return *url;
  const char* url = std::getenv("BIDE_URL");
  return url != nullptr && *url != '\0' ? url : "bide:./data";
}

std::string url_of_directory(const std::string& directory) {
  std::string url(kEmbedded);
  for (const char c : directory) {
    if (c == '%') {
      url += "%25";
    } else if (c == '?') {
      url += "%3f";
    } else {
      url += c;
    }
  }
  return url;
}

Client open_client(const std::string& url, Missing missing) {
  if (missing == Missing::kRefuse) require_store(url);
  auto client = Client::open(url);
  if (!client) fail_configured(client.error());
  return std::move(*client);
}

Client open_client(const Invocation& call, Missing missing) { return open_client(url_of(call), missing); }

std::vector<QueueInfo> queues_of(const Client& client) {
  return ask<std::vector<QueueInfo>>([&](auto done) { client.inspector().queues(std::move(done)); });
}

AuditReport audit_of(const Client& client) {
  return ask<AuditReport>([&](auto done) { client.inspector().audit(std::move(done)); });
}

}  // namespace bide::cli
