// Doctor: looks at a server over AMQP alone and says what endangers jobs there. Nothing is declared, and no job is
// moved; one lost message may be looked at and put back.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bide/job.h"
#include "bide/result.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/plan.h"

namespace bide::brokers::rabbitmq {

// Since 3.8.15 a delivery that is not acknowledged for so long costs the consumer its channel.
inline constexpr Milliseconds kUsualConsumerTimeout{30 * 60 * 1000};

struct Finding {
  enum class Weight : std::uint8_t {
    kFine,
    kAsk,      // Cannot be seen over AMQP: somebody has to know.
    kWarning,  // Works, but not as it could.
    kProblem,  // Jobs are in danger, late or refused.
  };
  Weight weight = Weight::kFine;
  std::string check = {};  // Stable, for programs: version, alarm, arguments, missing, lost ...
  std::string about = {};  // A queue or an exchange; empty: the server.
  std::string text = {};
  std::string remedy = {};
};

struct DoctorOptions {
  // Queues that nobody named but that are announced on the server are looked at as well.
  Deployment deployment = {};
  std::optional<Milliseconds> time_limit = {};        // The longest of any job.
  std::optional<Milliseconds> consumer_timeout = {};  // What the server is set to.
  Milliseconds patience{5000};                        // With probes.
};

// An error: the server cannot be reached, or the connection was lost.
Result<std::vector<Finding>> examine_server(const Settings& settings, const DoctorOptions& options);

}  // namespace bide::brokers::rabbitmq
