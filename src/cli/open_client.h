// The broker that a command works on, and what most of them ask it.

#pragma once

#include <string>
#include <vector>

#include "bide/client.h"
#include "cli/invocation.h"

namespace bide::cli {

enum class Missing { kCreate, kRefuse };  // What to do when there is no store yet.

// By --url, $BIDE_URL, or bide:./data. Throws Failure.
Client open_client(const Invocation& call, Missing missing);
Client open_client(const std::string& url, Missing missing);

std::string url_of(const Invocation& call);
// bide:DIRECTORY, with what a URL cannot hold escaped.
std::string url_of_directory(const std::string& directory);

std::vector<QueueInfo> queues_of(const Client& client);
AuditReport audit_of(const Client& client);

}  // namespace bide::cli
