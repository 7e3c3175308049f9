#include "support/redis_server.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "support/child_process.h"

namespace bide::support {
namespace {

constexpr char kServer[] = "/usr/bin/redis-server";
constexpr char kCommandLine[] = "/usr/bin/redis-cli";
constexpr std::chrono::seconds kRedisStartAtMost{60};
constexpr std::chrono::seconds kRedisAnswerAtMost{30};

}  // namespace

bool RedisServer::is_installed() { return access(kServer, X_OK) == 0 && access(kCommandLine, X_OK) == 0; }

RedisServer::RedisServer(std::vector<std::string> configuration, Kind kind) : kind_(kind), port_(free_port()) {
  if (!is_installed()) throw std::runtime_error("redis-server is not installed");
  std::ofstream file(directory_.path() + "/redis.conf");
  file << "bind 127.0.0.1\nport " << port_ << "\ndir " << directory_.path() << "\nlogfile " << directory_.path() << "/log\n";
  if (kind == Kind::kServer) {
    file << "save \"\"\nappendonly yes\nappendfsync always\nmaxmemory-policy noeviction\nrepl-diskless-sync-delay 0\n";
  }
  for (const std::string& line : configuration) file << line << "\n";
  file.close();
  start();
}

RedisServer::~RedisServer() { kill(); }

void RedisServer::start() {
  start_without_waiting();
  await();
}

void RedisServer::start_without_waiting() {
  if (process_ <= 0) launch();
}

void RedisServer::stop() {
  if (process_ <= 0) return;
  ::kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

void RedisServer::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

void RedisServer::pause() { ::kill(process_, SIGSTOP); }

void RedisServer::resume() { ::kill(process_, SIGCONT); }

std::string RedisServer::ask(const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {kCommandLine, "-h", "127.0.0.1", "-p", std::to_string(port_)};
  arguments.insert(arguments.end(), command.begin(), command.end());
  const Ended ended = run({.arguments = std::move(arguments), .environment = {"PATH=/usr/bin:/bin"}}, "", kRedisAnswerAtMost);
  if (!ended.succeeded()) throw std::runtime_error("redis-cli " + command.front() + ": " + ended.output);
  std::string text = ended.output;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void RedisServer::launch() {
  std::vector<std::string> arguments = {kServer, directory_.path() + "/redis.conf"};
  if (kind_ == Kind::kSentinel) arguments.push_back("--sentinel");
  process_ = spawn({.arguments = std::move(arguments),
                    .environment = {"PATH=/usr/bin:/bin", ServerKeeper::mark(directory_.path())},
                    .directory = directory_.path(),
                    .output = directory_.path() + "/output"});
}

void RedisServer::await() {
  const auto deadline = std::chrono::steady_clock::now() + kRedisStartAtMost;
  while (true) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) {
      process_ = -1;
      std::ifstream log(directory_.path() + "/log");
      throw std::runtime_error("redis-server ended while it started: " + std::string{std::istreambuf_iterator<char>(log), {}});
    }
    try {
      if (ask({"PING"}).find("PONG") != std::string::npos) return;
    } catch (const std::runtime_error&) {
      // Not there yet.
    }
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("redis-server does not start");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace bide::support
