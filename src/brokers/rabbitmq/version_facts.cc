#include "brokers/rabbitmq/version_facts.h"

#include <charconv>

namespace bide::brokers::rabbitmq {

namespace {

constexpr ServerVersion k4_0{4, 0};
constexpr ServerVersion k4_3{4, 3};

constexpr int kHighest = 100;
constexpr int kUsualLevel = 4;
constexpr int kHighestLevel = 31;

}  // namespace

ServerVersion ServerVersion::parse(std::string_view text) {
  ServerVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, version.major_number);
  if (error == std::errc() && dot != end && *dot == '.') std::from_chars(dot + 1, end, version.minor_number);
  return version;
}

ServerVersion ServerVersion::of(const FieldTable& server_properties) {
  const Field* const field = find_field(server_properties, "version");
  return field == nullptr || field->text() == nullptr ? ServerVersion{} : parse(*field->text());
}

VersionFacts facts_of(ServerVersion version) {
  VersionFacts facts;
  if (version >= k4_0) {
    facts.default_delivery_limit = 20;
    facts.continues_x_death = false;
    facts.message_bytes = std::size_t{16} * 1024 * 1024;
    // Until 4.2 there are two levels, served 2 : 1; and a message of the higher one that is not due holds back the lower
    // ones behind it that are. Not used.
  }
  if (version >= k4_3) {
    facts.timeout_cancels_consumer = true;
    facts.nack_counts = false;
    facts.timeout_counts = false;
    facts.forgets_new_queues = false;
    facts.has_partition_handling = false;
    facts.quorum_priorities = kHighestLevel + 1;
    facts.passive_needs_configure = true;
  }
  return facts;
}

std::uint8_t server_priority(int priority) {
  // Rounded away from 0, so that the least priority differs from none.
  const int above = kHighestLevel - kUsualLevel;
  const int level = priority > 0 ? kUsualLevel + (priority * above + kHighest - 1) / kHighest
                                 : kUsualLevel - (-priority * kUsualLevel + kHighest - 1) / kHighest;
  return static_cast<std::uint8_t>(level);
}

std::vector<std::string> consequences_of(ServerVersion version) {
  const VersionFacts facts = facts_of(version);
  std::vector<std::string> all;
  if (facts.default_delivery_limit) {
    all.push_back("quorum queues declared without x-delivery-limit drop a message after " +
                  std::to_string(*facts.default_delivery_limit) + " deliveries; bide's own queues have a limit each");
  }
  if (!facts.continues_x_death) {
    all.push_back(
        "x-death that a client publishes is not continued: programs that count attempts by it and publish again start "
        "at zero");
  }
  if (facts.message_bytes < VersionFacts{}.message_bytes) {
    all.push_back("a message has at most " + std::to_string(facts.message_bytes / 1024 / 1024) +
                  " MiB unless max_message_size says otherwise; a longer one is refused before it is sent "
                  "(max_message_size= in the URL when the server has another limit)");
  }
  if (facts.timeout_cancels_consumer) {
    all.push_back(
        "a consumer that exceeds consumer_timeout is cancelled and its deliveries run elsewhere, while its channel "
        "stays open; it does not count as a delivery, nor does basic.nack");
  }
  if (!facts.forgets_new_queues) {
    all.push_back(
        "no second queue (P.new.*) is made to keep new ones safe: the server does it by the feature flag "
        "track_qq_members_uids");
  }
  if (!facts.has_partition_handling) {
    all.push_back("cluster_partition_handling has no effect: a minority of nodes stops by itself");
  }
  if (facts.quorum_priorities > 1) {
    all.push_back("priorities are obeyed, in " + std::to_string(facts.quorum_priorities) + " levels");
  }
  if (facts.passive_needs_configure) {
    all.push_back("looking at a queue (counts, dead jobs) needs the right to configure it, also with declare=no");
  }
  return all;
}

}  // namespace bide::brokers::rabbitmq
