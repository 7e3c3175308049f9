// What the commands of `bide rabbitmq` begin with: the server's URL, read, and a connection to it.

#pragma once

#include <memory>
#include <string_view>

#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "cli/invocation.h"

namespace bide::cli {

// Throws Failure.
brokers::rabbitmq::Settings rabbitmq_settings(const Invocation& call);
std::unique_ptr<brokers::rabbitmq::Connection> connect(const brokers::rabbitmq::Settings& settings,
                                                       std::string_view purpose);
// A server that refuses user, password or virtual host has been given a wrong URL.
[[noreturn]] void fail_to_open(const Error& error);

}  // namespace bide::cli
