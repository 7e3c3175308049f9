// comq_run: a relay by bide and by ComQ on one RabbitMQ, in turns: takes a task, publishes one effect, and acknowledges
// when that is confirmed. With one task at a time, and with as many as is usual; and beside both a bare loop on one
// connection, which is what the server can do.
//
//   comq_run [--jobs N] [--rounds N] [--check]
//
// With --check little is done, and only whether every effect is there is of interest. Needs npm, which fetches ComQ once.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "bide/client.h"
#include "bide/wait.h"
#include "bide/worker.h"
#include "brokers/rabbitmq/amqp_url.h"
#include "brokers/rabbitmq/connection.h"
#include "platform/local_socket.h"
#include "support/rabbitmq_server.h"

namespace bide::interop_test {
namespace {

using std::chrono::steady_clock;

const std::string kCauses = "relay.causes";
const std::string kEffects = "relay.effects";

class Relays {
 public:
  Relays() {
    server_.start(0);
    const std::string folder = BIDE_COMQ_FOLDER "/0.12.0";
    const std::string install = "test -d " + folder + "/node_modules/comq || { mkdir -p " + folder +
                                " && npm install --prefix " + folder +
                                " --ignore-scripts --no-audit --no-fund --silent comq@0.12.0; }";
    if (std::system(install.c_str()) != 0) throw std::runtime_error("ComQ could not be installed: " + install);
  }

  // Jobs in a second.
  double bide(int credit, int jobs) {
    Client client = open();
    fill(client, jobs);
    std::atomic<std::int64_t> first = 0;
    Worker worker(client, {.queues = {kCauses}, .concurrency = 1, .credit = credit});
    worker.handle("relay", [&](const Job& job, Context& context) {
      if (first == 0) first = steady_clock::now().time_since_epoch().count();
      context.enqueue("relay", job.body, {.queue = kEffects, .content_type = "application/json"}).value();
    });
    must(worker.start());
    while (worker.stats().done < static_cast<std::uint64_t>(jobs)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::chrono::duration<double> took =
        steady_clock::now() - steady_clock::time_point(steady_clock::duration(first));
    worker.stop();
    check(client, jobs);
    return jobs / took.count();
  }

  // The same by a bare loop on one connection: what the server can do with so many under way.
  double bare(int prefetch, int jobs) {
    namespace amqp = brokers::rabbitmq;
    Client client = open();
    fill(client, jobs);
    amqp::Settings settings;
    settings.hosts = {{"127.0.0.1", server_.port()}};
    const auto connection = amqp::Connection::open(settings, "relay").value();
    for (const amqp::ChannelNumber channel : {kConsuming, kPublishing}) must(connection->open_channel(channel));
    must(connection->confirm_select(kPublishing));
    (void)connection->declare_queue(kPublishing, {.name = kEffects}).value();
    amqp::ConsumeOptions options;
    options.queue = kCauses;
    options.tag = "relay";
    options.prefetch = static_cast<std::uint16_t>(prefetch);
    must(connection->consume(kConsuming, options));
    steady_clock::time_point first = {};
    for (std::uint64_t confirmed = 0; confirmed < static_cast<std::uint64_t>(jobs);) {
      auto event = connection->next_event().value();
      if (!event) {
        std::array<platform::Readiness, 1> ready = {platform::Readiness{connection->descriptor(), true, false}};
        platform::wait_ready(ready, Milliseconds(100));
      } else if (auto* delivery = std::get_if<amqp::Delivery>(&*event)) {
        if (first == steady_clock::time_point()) first = steady_clock::now();
        must(connection->publish(kPublishing, "", kEffects, delivery->message, true));
      } else if (const auto* confirm = std::get_if<amqp::Confirm>(&*event)) {
        // Effects are published in the order of their causes: the numbers are the same.
        confirmed = confirm->multiple ? confirm->tag : confirmed + 1;
        must(connection->ack(kConsuming, confirm->tag, confirm->multiple));
      }
    }
    const std::chrono::duration<double> took = steady_clock::now() - first;
    must(connection->close_channel(kConsuming));
    check(client, jobs);
    return jobs / took.count();
  }

  double comq(int prefetch, int jobs) {
    Client client = open();
    fill(client, jobs);
    const std::string command = "NODE_PATH=" BIDE_COMQ_FOLDER "/0.12.0/node_modules node " BIDE_COMQ_RELAY " " +
                                std::to_string(server_.port()) + " " + std::to_string(prefetch) + " " + kCauses + " " +
                                kEffects + " " + std::to_string(jobs);
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    double seconds = 0;
    const bool read = pipe != nullptr && std::fscanf(pipe, "%lf", &seconds) == 1;
    if (pipe == nullptr || ::pclose(pipe) != 0 || !read) throw std::runtime_error("failed: " + command);
    check(client, jobs);
    return jobs / seconds;
  }

 private:
  static constexpr brokers::rabbitmq::ChannelNumber kConsuming = 1;
  static constexpr brokers::rabbitmq::ChannelNumber kPublishing = 2;

  static void must(const Status& status) {
    if (!status) throw std::runtime_error(status.error().message);
  }
  Client open() {
    return Client::open("amqp://guest:guest@127.0.0.1:" + std::to_string(server_.port()) +
                        "?prefix=relay&compat=comq&kind=relay")
        .value();
  }
  static void fill(Client& client, int jobs) {
    std::vector<Job> causes(static_cast<std::size_t>(jobs));
    for (std::size_t i = 0; i < causes.size(); ++i) {
      causes[i].kind = "relay";
      causes[i].queue = kCauses;
      causes[i].content_type = "application/json";
      causes[i].body = "{\"n\":" + std::to_string(i) + ",\"text\":\"" + std::string(180, 'x') + "\"}";
    }
    for (const auto& each : client.enqueue(std::move(causes))) (void)each.value();
  }
  static void check(Client& client, int jobs) {
    const std::uint64_t found =
        bide::wait<std::uint64_t>([&](auto done) { client.inspector().purge(kEffects, std::move(done)); }).value();
    if (found != static_cast<std::uint64_t>(jobs)) {
      throw std::runtime_error(std::to_string(found) + " effects of " + std::to_string(jobs) + " causes");
    }
  }

  support::RabbitmqServer server_{1};
};

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string text(const std::vector<double>& ratios) {
  std::string all;
  for (const double ratio : ratios) {
    std::array<char, 32> one{};
    std::snprintf(one.data(), one.size(), "%s%.2f", all.empty() ? "" : " ", ratio);
    all += one.data();
  }
  return all;
}

void run(int jobs, int rounds) {
  Relays relays;
  struct Pair {
    const char* what;
    int credit, prefetch, share;  // The share of the jobs.
  };
  std::printf("jobs/s, the middle of %d rounds; ratios of each round\n", rounds);
  for (const Pair& pair : {Pair{"one at a time", 1, 1, 4}, Pair{"bide 64, ComQ's own 300", 64, 0, 1},
                           Pair{"bide 300, ComQ's own 300", 300, 0, 1}}) {
    std::vector<double> ours, theirs, limits, to_theirs, to_limit;
    for (int round = 0; round < rounds; ++round) {
      theirs.push_back(relays.comq(pair.prefetch, jobs / pair.share));
      ours.push_back(relays.bide(pair.credit, jobs / pair.share));
      limits.push_back(relays.bare(pair.credit, jobs / pair.share));
      to_theirs.push_back(ours.back() / theirs.back());
      to_limit.push_back(ours.back() / limits.back());
    }
    std::printf("%-25s bide %6.0f  ComQ %6.0f  bare loop %6.0f  bide/ComQ %.2f [%s]  bide/bare %.2f [%s]\n", pair.what,
                middle(ours), middle(theirs), middle(limits), middle(to_theirs), text(to_theirs).c_str(), middle(to_limit),
                text(to_limit).c_str());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace bide::interop_test

int main(int count, char** arguments) {
  using namespace bide::interop_test;
  int jobs = 20'000, rounds = 3;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--check") {
      jobs = 400, rounds = 1;
    } else if (name == "--jobs" && i + 1 < count) {
      jobs = std::atoi(arguments[++i]);
    } else if (name == "--rounds" && i + 1 < count) {
      rounds = std::atoi(arguments[++i]);
    } else {
      std::fprintf(stderr, "usage: comq_run [--jobs N] [--rounds N] [--check]\n");
      return 64;
    }
  }
  if (!bide::support::RabbitmqServer::is_installed() || std::system("npm --version > /dev/null 2>&1") != 0) {
    std::printf("rabbitmq-server or npm is not installed\n");
    return 0;
  }
  if (jobs < 8 || rounds < 1) return 64;
  try {
    run(jobs, rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "comq_run: %s\n", error.what());
    return 1;
  }
}
