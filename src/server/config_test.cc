#include "server/config.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <regex>
#include <string>

#include "support/temporary_directory.h"

namespace bide::server {
namespace {

using namespace std::chrono_literals;

TEST(Configuration, SaysNothingThatIsNotInTheFile) {
  const Result<ServerOptions> read = parse_configuration("", "bide.toml");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->url, ServerOptions().url);
  EXPECT_EQ(read->listen, ServerOptions().listen);
  EXPECT_EQ(read->callbacks.policy.mode(), AddressPolicy::Mode::kOff);
}

TEST(Configuration, HasAKeyForEverything) {
  const Result<ServerOptions> read = parse_configuration(R"(
url = "amqp://localhost/%2f"
listen = ["0.0.0.0:80", "unix:/run/bide/bide.sock"]
hosts = ["bide.example.org"]
threads = 4
grace = "1m30s"

[tls]
certificate = "/etc/bide/chain.pem"
key = "/etc/bide/key.pem"

[auth]
token_file = "/etc/bide/tokens"
local_without_token = true

[limits]
head_bytes = "32KiB"
fields = 50
target_bytes = 4096
body_bytes = "1MiB"
held_bytes = "1GiB"
stream_bytes = 2048
connections = 500
idle_timeout = "10s"
head_timeout = "2s"
transfer_timeout = "3s"
slowest_rate = 1000

[log]
format = "json"
level = "debug"

[callbacks]
policy = "allow-list"
allow = ["hooks.example.org", "10.0.0.0/8"]
ports = [443, 9443]
queues = ["hooks"]
secrets = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"]
concurrency = 10
per_host = 3
per_address = 4
accepted = 5
hosts = 6
connect_within = "1s"
answer_within = "7s"
answer_limit = "1KiB"
longest_retry_after = "8m"
lease = "40s"
failures_to_open = 9
shortest_pause = "11s"
longest_pause = "12m"
log_entries = 13
log_bytes = "14MiB"

[callbacks.secrets_by_host]
"hooks.example.org" = ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"]
)",
                                                         "bide.toml");
  ASSERT_TRUE(read) << read.error().message;
  const ServerOptions& server = *read;
  EXPECT_EQ(server.url, "amqp://localhost/%2f");
  EXPECT_EQ(server.listen, (std::vector<std::string>{"0.0.0.0:80", "unix:/run/bide/bide.sock"}));
  EXPECT_EQ(server.hosts, std::vector<std::string>{"bide.example.org"});
  EXPECT_EQ(server.threads, 4);
  EXPECT_EQ(server.grace, 90s);
  EXPECT_EQ(server.tls.certificate, "/etc/bide/chain.pem");
  EXPECT_EQ(server.tls.key, "/etc/bide/key.pem");
  EXPECT_EQ(server.token_file, "/etc/bide/tokens");
  EXPECT_TRUE(server.local_without_token);
  EXPECT_EQ(server.limits.head_bytes, 32u * 1024);
  EXPECT_EQ(server.limits.fields, 50u);
  EXPECT_EQ(server.limits.target_bytes, 4096u);
  EXPECT_EQ(server.limits.body_bytes, 1u << 20);
  EXPECT_EQ(server.limits.held_bytes, 1u << 30);
  EXPECT_EQ(server.limits.stream_bytes, 2048u);
  EXPECT_EQ(server.limits.connections, 500u);
  EXPECT_EQ(server.limits.idle_timeout, 10s);
  EXPECT_EQ(server.limits.head_timeout, 2s);
  EXPECT_EQ(server.limits.transfer_timeout, 3s);
  EXPECT_EQ(server.limits.slowest_rate, 1000u);
  EXPECT_EQ(read->log.format, LogFormat::kJson);
  EXPECT_EQ(read->log.level, LogLevel::kDebug);
  const CallbackOptions& callbacks = read->callbacks;
  EXPECT_EQ(callbacks.policy.mode(), AddressPolicy::Mode::kAllowList);
  EXPECT_TRUE(callbacks.policy.check("https://hooks.example.org:9443/"));
  EXPECT_FALSE(callbacks.policy.check("https://hooks.example.org:8443/"));
  EXPECT_EQ(callbacks.queues, std::vector<std::string>{"hooks"});
  EXPECT_EQ(callbacks.secrets.size(), 1u);
  EXPECT_EQ(callbacks.secrets_by_host.at("hooks.example.org").size(), 1u);
  EXPECT_EQ(callbacks.concurrency, 10);
  EXPECT_EQ(callbacks.per_host, 3);
  EXPECT_EQ(callbacks.per_address, 4);
  EXPECT_EQ(callbacks.accepted, 5);
  EXPECT_EQ(callbacks.hosts, 6u);
  EXPECT_EQ(callbacks.connect_within, 1s);
  EXPECT_EQ(callbacks.answer_within, 7s);
  EXPECT_EQ(callbacks.answer_limit, 1024u);
  EXPECT_EQ(callbacks.longest_retry_after, 8min);
  EXPECT_EQ(callbacks.lease, 40s);
  EXPECT_EQ(callbacks.failures_to_open, 9);
  EXPECT_EQ(callbacks.shortest_pause, 11s);
  EXPECT_EQ(callbacks.longest_pause, 12min);
  EXPECT_EQ(callbacks.log_entries, 13u);
  EXPECT_EQ(callbacks.log_bytes, 14u << 20);
}

TEST(Configuration, SaysWhereItIsWrongAndWhatWasProbablyMeant) {
  const struct {
    std::string_view text;
    std::string_view message;
  } cases[] = {
      {"lissten = []", "f:1:1: unknown key 'lissten'; did you mean 'listen'?"},
      {"url = \"x\"\n[lmits]\n", "f:2:2: unknown key 'lmits'; did you mean 'limits'?"},
      {"[auth]\n  tokenfile = 1", "f:2:3: unknown key 'tokenfile' in [auth]; did you mean 'token_file'?"},
      {"[log]\nlisten = []", "f:2:1: unknown key 'listen' in [log]; it belongs above all sections"},
      {"body_bytes = 5", "f:1:1: unknown key 'body_bytes'; it belongs in [limits]"},
      {"[tls]\nbanana = 5", "f:2:1: unknown key 'banana' in [tls]; known are certificate, key"},
      {"threads = \"two\"", "f:1:11: threads: expected a whole number from 1 to 256, not a string"},
      {"threads = 0", "f:1:11: threads: expected a whole number from 1 to 256, not 0"},
      {"threads = 1.5", "f:1:11: threads: expected a whole number from 1 to 256, not a number with a point"},
      {"url = 5", "f:1:7: url: expected a string, not a whole number"},
      {"url = 2026-01-02", "f:1:7: url: expected a string, not a date or time"},
      {"listen = \"a\"", "f:1:10: listen: expected an array of strings, not a string"},
      {"listen = [\"a\", 5]", "f:1:10: listen: expected an array of strings, not a whole number"},
      {"listen = []", "f:1:10: listen: expected at least one address"},
      {"grace = 30", "f:1:9: grace: expected a duration such as \"30s\" or \"500ms\", not a whole number"},
      {"grace = \"5 parsecs\"", "f:1:9: grace: invalid duration '5 parsecs'"},
      {"[limits]\nbody_bytes = \"5MB\"", "f:2:14: limits.body_bytes: invalid size '5MB'"},
      {"[limits]\nbody_bytes = 5", "f:2:14: limits.body_bytes: expected 1024 to"},
      {"[limits]\nbody_bytes = -5", "f:2:14: limits.body_bytes: expected bytes"},
      {"[auth]\nlocal_without_token = \"yes\"",
       "f:2:23: auth.local_without_token: expected true or false, not a string"},
      {"[log]\nlevel = \"warn\"",
       "f:2:9: log.level: expected one of \"debug\", \"info\", \"warning\", \"error\", not 'warn'; did you mean "
       "'warning'?"},
      {"log = 5", "f:1:7: log: expected a section, not a whole number"},
      {"[tls]\ncertificate = \"c\"", "f:1:1: tls.key is missing"},
      {"[callbacks]\npolicy = \"public\"", "f:2:10: callbacks.policy: "},
      {"[callbacks]\npolicy = \"allow-list\"\nallow = [\"not an address\"]", "f:3:9: callbacks.allow: "},
      {"[callbacks]\npolicy = \"allow-list\"", "f:2:10: callbacks.policy: "},
      {"[callbacks]\nallow = [\"a b\"]", "f:2:9: callbacks.allow: "},
      {"[callbacks]\nports = [0]", "f:2:9: callbacks.ports: expected a whole number from 1 to 65535, not 0"},
      {"url = \"a\"\nurl = \"b\"", "f:2:"},
      {"url = \"a", "f:1:"},
      {"url = ", "f:1:"},
      {"\xff = 1", "f:1:"},
  };
  for (const auto& each : cases) {
    const Result<ServerOptions> read = parse_configuration(each.text, "f");
    ASSERT_FALSE(read) << each.text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(read.error().message.substr(0, each.message.size()), each.message) << read.error().message;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

TEST(Configuration, IsReadFromAFile) {
  const support::TemporaryDirectory directory;
  const std::string path = directory.path() + "/bide.toml";
  std::ofstream(path) << "threads = 3\n";
  const Result<ServerOptions> read = read_configuration(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->threads, 3);
  std::ofstream(path) << "";
  EXPECT_TRUE(read_configuration(path));
}

// Every key of the example, also those that are commented out, is one, and has its default.
TEST(Configuration, IsExplainedByTheExampleOfThePackage) {
  std::ifstream file(BIDE_EXAMPLE_CONFIGURATION);
  ASSERT_TRUE(file);
  std::string text;
  std::size_t keys = 0;
  for (std::string line; std::getline(file, line);) {
    const bool is_key =
        line.starts_with('#') && line.size() > 1 && line[1] != ' ' && line.find("whsec_...") == std::string::npos;
    text += (is_key ? line.substr(1) : line) + "\n";
    keys += line.find(" = ") != std::string::npos && !line.starts_with("# ") ? 1u : 0u;
  }
  text = std::regex_replace(text, std::regex("\"/etc/bide/(chain|key)\\.pem\""), "\"\"");
  EXPECT_GE(keys, 40u);
  const Result<ServerOptions> read = parse_configuration(text, "bide.toml");
  ASSERT_TRUE(read) << read.error().message << text;
  const HttpLimits limits;
  EXPECT_EQ(read->listen, ServerOptions().listen);
  EXPECT_EQ(read->threads, ServerOptions().threads);
  EXPECT_EQ(read->grace, ServerOptions().grace);
  EXPECT_EQ(read->limits.head_bytes, limits.head_bytes);
  EXPECT_EQ(read->limits.fields, limits.fields);
  EXPECT_EQ(read->limits.target_bytes, limits.target_bytes);
  EXPECT_EQ(read->limits.body_bytes, limits.body_bytes);
  EXPECT_EQ(read->limits.held_bytes, limits.held_bytes);
  EXPECT_EQ(read->limits.stream_bytes, limits.stream_bytes);
  EXPECT_EQ(read->limits.connections, limits.connections);
  EXPECT_EQ(read->limits.idle_timeout, limits.idle_timeout);
  EXPECT_EQ(read->limits.head_timeout, limits.head_timeout);
  EXPECT_EQ(read->limits.transfer_timeout, limits.transfer_timeout);
  EXPECT_EQ(read->limits.slowest_rate, limits.slowest_rate);
  const CallbackOptions callbacks;
  EXPECT_EQ(read->callbacks.queues, callbacks.queues);
  EXPECT_EQ(read->callbacks.concurrency, callbacks.concurrency);
  EXPECT_EQ(read->callbacks.per_host, callbacks.per_host);
  EXPECT_EQ(read->callbacks.per_address, callbacks.per_address);
  EXPECT_EQ(read->callbacks.accepted, callbacks.accepted);
  EXPECT_EQ(read->callbacks.hosts, callbacks.hosts);
  EXPECT_EQ(read->callbacks.connect_within, callbacks.connect_within);
  EXPECT_EQ(read->callbacks.answer_within, callbacks.answer_within);
  EXPECT_EQ(read->callbacks.answer_limit, callbacks.answer_limit);
  EXPECT_EQ(read->callbacks.longest_retry_after, callbacks.longest_retry_after);
  EXPECT_EQ(read->callbacks.lease, callbacks.lease);
  EXPECT_EQ(read->callbacks.failures_to_open, callbacks.failures_to_open);
  EXPECT_EQ(read->callbacks.shortest_pause, callbacks.shortest_pause);
  EXPECT_EQ(read->callbacks.longest_pause, callbacks.longest_pause);
  EXPECT_EQ(read->callbacks.log_entries, callbacks.log_entries);
  EXPECT_EQ(read->callbacks.log_bytes, callbacks.log_bytes);
}

TEST(Configuration, SaysWhyAFileCannotBeRead) {
  const support::TemporaryDirectory directory;
  const auto missing = read_configuration(directory.path() + "/none.toml");
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("/none.toml: No such file"), std::string::npos) << missing.error().message;
  const auto folder = read_configuration(directory.path());
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("Is a directory"), std::string::npos) << folder.error().message;
}

TEST(Configuration, ReadsSizesAsPeopleWriteThem) {
  EXPECT_EQ(*parse_size("0"), 0u);
  EXPECT_EQ(*parse_size("512B"), 512u);
  EXPECT_EQ(*parse_size("64KiB"), 65'536u);
  EXPECT_EQ(*parse_size("2 GiB"), 2ull << 30);
  for (const char* text : {"", "KiB", "5MB", "-1", "1.5MiB", "99999999999GiB", "99999999999999999999", "5  KiB"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

}  // namespace
}  // namespace bide::server
