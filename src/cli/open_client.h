// The broker that a command works on, and what most of them ask it.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/client.h"
#include "cli/invocation.h"

namespace bide::brokers::rabbitmq {
class Connection;
struct Settings;
}  // namespace bide::brokers::rabbitmq

namespace bide::cli {

enum class Missing { kCreate, kRefuse };  // What to do when there is no store yet.

// By --url, $BIDE_URL, or bide:./data. Throws Failure.
Client open_client(const Invocation& call, Missing missing);
Client open_client(const std::string& url, Missing missing, ClientOptions options = {});

std::string url_of(const Invocation& call);
// bide:DIRECTORY, with what a URL cannot hold escaped.
std::string url_of_directory(const std::string& directory);

std::vector<QueueInfo> queues_of(const Client& client);
AuditReport audit_of(const Client& client);

// What the commands of `bide rabbitmq` begin with: the server's URL, read, and a connection to it. Throw Failure.
brokers::rabbitmq::Settings rabbitmq_settings(const Invocation& call);
std::unique_ptr<brokers::rabbitmq::Connection> connect(const brokers::rabbitmq::Settings& settings,
                                                       std::string_view purpose);
// A server that refuses user, password or virtual host has been given a wrong URL.
[[noreturn]] void fail_to_open(const Error& error);

}  // namespace bide::cli
