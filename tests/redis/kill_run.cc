// redis_kill_run: kill_run (tests/crash) on a Redis of its own with appendfsync always: producers and workers in processes of
// their own are killed and paused under load, and the server is killed, too, if asked for. The checker has the last word.
//
//   redis_kill_run [--seconds N] [--server-kills N] [--seed N]
//
// Ends as kill_run does: 0 when all was well, 1 when it was not, 2 when it was no test.

#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "support/child_process.h"
#include "support/redis_server.h"
#include "support/temporary_directory.h"

namespace bide::redis_test {
namespace {

struct KillOptions {
  int seconds = 15;
  int server_kills = 0;
  std::string seed = {};
};

int run_kills(const KillOptions& options) {
  if (!support::RedisServer::is_installed()) {
    std::printf("redis-server is not installed\n");
    return 0;
  }
  support::RedisServer server;
  const support::TemporaryDirectory directory;
  const std::string output = directory.path() + "/output";
  // Everything that is done must be there to be read back.
  std::vector<std::string> arguments = {BIDE_KILL_RUN, "--seconds", std::to_string(options.seconds), "--url",
                                        server.url() + "?done_limit=100000000&result_retention=1000h"};
  if (!options.seed.empty()) arguments.insert(arguments.end(), {"--seed", options.seed});
  const pid_t child = support::spawn({.arguments = arguments, .environment = {"PATH=/usr/bin:/bin"}, .output = output});
  int status = 0;
  for (int kills = 0; kills < options.server_kills; ++kills) {
    // Spread over the time of harm; what is left of the last one falls into the drain.
    std::this_thread::sleep_for(std::chrono::milliseconds(options.seconds * 1000 / (options.server_kills + 1)));
    server.kill();
    server.start();
  }
  waitpid(child, &status, 0);
  std::ifstream file(output);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::printf("%sserver kills: %d\n", text.c_str(), options.server_kills);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main_program(int count, char** arguments) {
  KillOptions options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    if (name == "--seconds") options.seconds = std::atoi(arguments[i + 1]);
    if (name == "--server-kills") options.server_kills = std::atoi(arguments[i + 1]);
    if (name == "--seed") options.seed = arguments[i + 1];
  }
  return run_kills(options);
}

}  // namespace
}  // namespace bide::redis_test

int main(int count, char** arguments) { return bide::redis_test::main_program(count, arguments); }
