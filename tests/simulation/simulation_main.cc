// The simulation as a command.
//
//   simulation_test --seeds 1..1000            those runs, one after the other
//   simulation_test --seed 4711 --trace        one run, with all that happens
//   simulation_test --seeds 1..1000000         a million, in some hours; or in shares, one a core:
//   simulation_test --seeds 1..500000 & simulation_test --seeds 500001..1000000
//   --ops N                                    steps in a run, otherwise 150
//   --counts                                   how often everything happened
//
// Exit status 1: a run went wrong, or something that should have been tried never happened.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <malloc.h>
#include <unistd.h>

#include "simulation/simulation.h"

namespace {

using bide::simulation::Event;
using bide::simulation::Simulation;
using bide::simulation::Tally;

struct Command {
  std::uint64_t first = 1;
  std::uint64_t last = 200;
  int steps = 150;
  bool trace = false;
  bool counts = false;
};

// Fewer runs than this need not have tried everything.
constexpr std::uint64_t kRunsThatTryEverything = 500;
constexpr std::uint64_t kRunsBetweenRepetitions = 50;

char replay[256];

// The engine aborts when it finds itself wrong: then this is all that can still be said.
void say_how_to_replay(int) { (void)!write(STDERR_FILENO, replay, std::strlen(replay)); }

int usage() {
  std::fprintf(stderr, "usage: simulation_test [--seed N | --seeds FROM..TO] [--ops N] [--trace] [--counts]\n");
  return 2;
}

bool parse(int argc, char** argv, Command& command) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--trace") {
      command.trace = true;
      continue;
    }
    if (flag == "--counts") {
      command.counts = true;
      continue;
    }
    if (i + 1 == argc) return false;
    char* end = argv[++i];
    if (flag == "--seed") {
      command.first = command.last = std::strtoull(argv[i], &end, 10);
    } else if (flag == "--seeds") {
      command.first = std::strtoull(argv[i], &end, 10);
      if (std::strncmp(end, "..", 2) != 0) return false;
      command.last = std::strtoull(end + 2, &end, 10);
    } else if (flag == "--ops") {
      command.steps = std::atoi(argv[i]);
      end += std::strlen(end);
    } else {
      return false;
    }
    if (*end != '\0') return false;
  }
  return command.first <= command.last && command.steps > 0;
}

// False: it went wrong, and that has been said.
bool run(std::uint64_t seed, const Command& command, Tally& tally, std::uint64_t& hash) {
  std::snprintf(replay, sizeof replay, "seed %llu failed\n    replay: simulation_test --seed %llu --ops %d --trace\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed), command.steps);
  Simulation simulation(seed, tally, command.trace);
  try {
    simulation.run(command.steps);
  } catch (const bide::simulation::Violation& violation) {
    std::fprintf(stderr, "seed %llu, step %d: %s\n%s", static_cast<unsigned long long>(seed), simulation.step(),
                 violation.text.c_str(), replay);
    return false;
  }
  hash = simulation.hash();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Command command;
  if (!parse(argc, argv, command)) return usage();
  std::signal(SIGABRT, say_how_to_replay);
  std::signal(SIGSEGV, [](int number) {
    say_how_to_replay(number);
    _exit(1);
  });
  // The entries of a ledger are megabytes of zeros, hardly touched: the kernel gives them for less than filling them costs.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  Tally tally;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = command.first; seed <= command.last; ++seed) {
    std::uint64_t hash = 0;
    if (!run(seed, command, tally, hash)) {
      if (++failed == 10) break;
      continue;
    }
    if (seed % kRunsBetweenRepetitions == 0) {
      Tally unused;
      std::uint64_t again = 0;
      if (!run(seed, command, unused, again) || hash != again) {
        std::fprintf(stderr, "seed %llu: twice is not the same\n", static_cast<unsigned long long>(seed));
        ++failed;
      }
    }
    if (command.first == command.last) std::printf("hash %016llx\n", static_cast<unsigned long long>(hash));
  }
  const std::uint64_t runs = command.last - command.first + 1;
  for (std::size_t i = 0; i < bide::simulation::kEvents; ++i) {
    const std::uint64_t times = tally.of(static_cast<Event>(i));
    if (command.counts)
      std::printf("%12llu %s\n", static_cast<unsigned long long>(times), bide::simulation::kEventNames[i]);
    if (times > 0 || runs < kRunsThatTryEverything || failed > 0) continue;
    std::fprintf(stderr, "invalid: never happened: %s\n", bide::simulation::kEventNames[i]);
    ++failed;
  }
  std::printf("%llu runs, %llu steps, %llu failed\n", static_cast<unsigned long long>(runs),
              static_cast<unsigned long long>(tally.of(Event::kSteps)), static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}
