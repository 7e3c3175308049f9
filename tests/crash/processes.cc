#include "crash/processes.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <stdexcept>
#include <thread>

#include "platform/disk.h"

extern char** environ;

namespace bide::crash {

std::optional<pid_t> owner_of(const std::string& url) {
  constexpr std::string_view kScheme = "bide:";
  if (url.compare(0, kScheme.size(), kScheme) != 0) return std::nullopt;
  const std::string directory = url.substr(kScheme.size(), url.find('?') - kScheme.size());
  std::ifstream file(directory + "/" + platform::kLockFileName);
  pid_t pid = 0;
  if (!(file >> pid) || pid <= 0) return std::nullopt;
  return pid;
}

Processes::Processes(std::string program, std::string url, std::string history_directory)
    : program_(std::move(program)),
      url_(std::move(url)),
      history_directory_(std::move(history_directory)),
      history_(history_directory_, "injector") {}

Processes::~Processes() {
  for (const auto& [name, pid] : running_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

void Processes::spawn(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program_, url_, history_directory_, name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  history_.say("spawned " + name);
  pid_t pid = 0;
  if (posix_spawn(&pid, program_.c_str(), nullptr, nullptr, pointers.data(), environ) != 0) {
    throw std::runtime_error("cannot start " + program_);
  }
  running_[name] = pid;
}

int Processes::gone(const std::string& name, int status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  history_.say("gone " + name + " " + std::to_string(code));
  running_.erase(name);
  return code;
}

void Processes::kill(const std::string& name) {
  const pid_t pid = running_.at(name);
  history_.say("killed " + name + " " + role_of(name));
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  gone(name, status);
}

void Processes::pause(const std::string& name) {
  history_.say("paused " + name + " " + role_of(name));
  ::kill(running_.at(name), SIGSTOP);
}

void Processes::resume(const std::string& name) {
  history_.say("resumed " + name);
  ::kill(running_.at(name), SIGCONT);
}

void Processes::terminate(const std::string& name) {
  history_.say("stopped " + name);
  ::kill(running_.at(name), SIGTERM);
}

std::optional<int> Processes::wait(const std::string& name, std::chrono::milliseconds at_most) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  for (;;) {
    int status = 0;
    if (::waitpid(running_.at(name), &status, WNOHANG) > 0) return gone(name, status);
    if (std::chrono::steady_clock::now() >= until) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::map<std::string, int> Processes::reap() {
  std::map<std::string, int> ended;
  for (const std::string& name : names()) {
    if (const auto code = wait(name, std::chrono::milliseconds(0))) ended[name] = *code;
  }
  return ended;
}

std::vector<std::string> Processes::names() const {
  std::vector<std::string> names;
  for (const auto& [name, pid] : running_) names.push_back(name);
  return names;
}

std::optional<std::string> Processes::owner() const {
  const auto pid = owner_of(url_);
  for (const auto& [name, running] : running_) {
    if (pid && running == *pid) return name;
  }
  return std::nullopt;
}

std::string Processes::role_of(const std::string& name) const {
  if (owner() == name) return "owner";
  return name.compare(0, 8, "producer") == 0 ? "producer" : "guest";
}

}  // namespace bide::crash
