// open_broker: from a URL to the broker it names. The one place that knows every kind of broker.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "bide/result.h"
#include "engine/options.h"

namespace bide::brokers {

struct OpenedBroker {
  std::shared_ptr<Broker> broker;
  std::shared_ptr<Inspector> inspector;
  std::shared_ptr<Broker> outbox = {};  // Where jobs can be spilled; null: there is none.
};

struct OpenOptions {
  // Told how long each commit of the embedded engine took, on its thread; other brokers have none.
  std::function<void(std::chrono::microseconds)> on_commit = {};
  // Told of each place of the embedded engine's store that cannot be read, on its thread. Default: a line on stderr.
  std::function<void(const engine::Damage&)> on_damage = {};
};

// A URL with the setting outbox=DIRECTORY: a local store in front of the broker (outbox/outbox_broker.h).
struct OutboxUrl {
  std::string target = {};     // The URL without the settings of the outbox.
  std::string directory = {};  // Empty: no outbox.
  std::uint64_t max_jobs = 1'000'000;
  bool only_spilled = false;   // Jobs go to the target itself, unless they are spilled.
};
Result<OutboxUrl> parse_outbox_url(std::string_view url);

// kInvalidArgument: the URL names no broker, or a setting is wrong; the message lists what is known.
// kUnsupported: a broker that is not built in. Otherwise what the broker says. A password is never repeated.
Result<OpenedBroker> open_broker(std::string_view url, const OpenOptions& options = {});

// What somebody should know of the settings of the server behind a URL.
struct ServerFinding {
  bool ok = true;
  std::string what = {};
  std::string advice = {};  // Empty: nothing is to be done.
};

// Nothing where the broker has no server, or its server has no settings that concern jobs. Errors as open_broker().
Result<std::vector<ServerFinding>> examine_server(std::string_view url);

// Of the embedded engine: bide:DIRECTORY?SETTINGS. For what concerns a data directory only.
Result<engine::EngineOptions> parse_engine_url(std::string_view url);

}  // namespace bide::brokers
