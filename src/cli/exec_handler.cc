#include "cli/exec_handler.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "bide/job.h"
#include "cli/failure.h"
#include "cli/program_guard.h"
#include "core/quote.h"

extern char** environ;

namespace bide::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kExitDead = 65;
constexpr int kExitRetry = 75;
constexpr int kExitNotStarted = 127;
constexpr auto kFirstHold = std::chrono::seconds(1);
constexpr auto kLongestHold = std::chrono::minutes(5);
constexpr auto kLook = std::chrono::milliseconds(50);  // How often an attempt asks whether it is to stop.
constexpr auto kUntilKill = std::chrono::seconds(2);

// The process groups of this process's programs. A group is killed only while its leader has not been waited for, so
// that its number cannot have gone to somebody else.
class Programs {
 public:
  void add(pid_t child) {
    std::lock_guard lock(mutex_);
    running_.insert(child);
  }
  // True when it has ended; nothing of its group is left then.
  bool reap(pid_t child, int& status) {
    std::lock_guard lock(mutex_);
    siginfo_t info{};
    const int ended = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
    if (ended != 0 || info.si_pid != child) return false;
    // What it has left running in the background would meet the next attempt.
    ::kill(-child, SIGKILL);
    ProgramGuard::forget(child);
    ::waitpid(child, &status, 0);
    running_.erase(child);
    if (running_.empty()) none_left_.notify_all();
    return true;
  }
  bool wait_until_none(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return none_left_.wait_for(lock, timeout, [this] { return running_.empty(); });
  }
  void kill_all() {
    std::lock_guard lock(mutex_);
    for (const pid_t child : running_) ::kill(-child, SIGKILL);
  }

 private:
  std::condition_variable none_left_;
  std::mutex mutex_;  // Guards everything below.
  std::set<pid_t> running_;
};

Programs& programs() {
  // Never destroyed: abandoned threads may use it until the very end.
  static Programs& all = *new Programs;
  return all;
}

class End {
 public:
  explicit End(int descriptor = -1) : descriptor_(descriptor) {}
  End(End&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  End& operator=(End&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~End() { close(); }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  int release() { return std::exchange(descriptor_, -1); }
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

struct Pipe {
  End read;
  End write;
};

[[noreturn]] void fail_start(int reason) { throw std::system_error(reason, std::generic_category()); }

// Not one of the numbers that a program has its standard streams under, should they be free here.
End opened(int descriptor) {
  if (descriptor < 0) fail_start(errno);
  if (descriptor > STDERR_FILENO) return End(descriptor);
  const End low(descriptor);
  return opened(::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_start(errno);
  End write(ends[1]);
  End read = opened(ends[0]);
  return {std::move(read), opened(write.release())};
}

// A file, not a pipe: should the worker die, its program must not take what it got so far for all of it.
End file_of(const std::string& body) {
  End file = opened(::memfd_create("bide-body", MFD_CLOEXEC));
  for (std::size_t written = 0; written < body.size();) {
    const auto got = ::write(file.get(), body.data() + written, body.size() - written);
    if (got < 0 && errno != EINTR) fail_start(errno);
    if (got > 0) written += static_cast<std::size_t>(got);
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::string variable_name(std::string_view header) {
  std::string name = "BIDE_HEADER_";
  for (const char c : header) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

std::vector<std::string> environment_of(const Context& context) {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("BIDE_")) variables.emplace_back(*each);
  }
  const Job& job = context.job();
  variables.push_back("BIDE_JOB_ID=" + job.id.to_string());
  variables.push_back("BIDE_KIND=" + job.kind);
  variables.push_back("BIDE_QUEUE=" + job.queue);
  variables.push_back("BIDE_ATTEMPT=" + std::to_string(context.attempt()));
  variables.push_back("BIDE_CONTENT_TYPE=" + std::string(content_type_or_default(job.content_type)));
  for (const auto& [name, value] : job.headers) {
    // The environment cannot hold a zero byte.
    if (value.find('\0') == std::string::npos) variables.push_back(variable_name(name) + "=" + value);
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

void limit(int resource, std::uint64_t value) {
  if (value == 0) return;
  const rlimit both{value, value};
  ::setrlimit(static_cast<__rlimit_resource_t>(resource), &both);
}

// Between fork and exec only what is safe in a signal handler.
[[noreturn]] void become(const ExecOptions& options, char* const* arguments, char* const* variables, pid_t worker, int in,
                         int out, int error, int failure) {
  ::setpgid(0, 0);
  // Should the worker be killed, its program goes with it, and all that has started: the job will be run again elsewhere.
  ProgramGuard::watch(::getpid());
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != worker) ::_exit(kExitNotStarted);  // It was killed before that.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM}) ::signal(number, SIG_DFL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(error, STDERR_FILENO);
  limit(RLIMIT_AS, options.memory_bytes);
  limit(RLIMIT_CPU, options.cpu_seconds);
  ::execvpe(arguments[0], arguments, variables);
  const int reason = errno;
  [[maybe_unused]] auto ignored = ::write(failure, &reason, sizeof reason);
  ::_exit(kExitNotStarted);
}

// Reads what one running program says.
class Conversation {
 public:
  Conversation(pid_t child, End out, End error, Context& context)
      : child_(child), out_(std::move(out)), error_(std::move(error)), context_(context) {
    for (const int descriptor : {out_.get(), error_.get()}) ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  }

  // The status of waitpid, once the program has ended.
  int run() {
    for (;;) {
      stop_if_asked();
      listen();
      int status = 0;
      if (programs().reap(child_, status)) {
        read_result();
        read_errors();
        return status;
      }
    }
  }

  bool stopped() const { return asked_.has_value(); }
  std::uint64_t result_bytes() const { return result_bytes_; }
  std::string take_result() { return std::move(result_); }
  std::string take_errors() { return std::move(errors_); }

 private:
  void stop_if_asked() {
    if (!asked_ && context_.stop_token().stop_requested()) {
      asked_ = Clock::now();
      ::kill(-child_, SIGTERM);
    } else if (asked_ && Clock::now() - *asked_ > kUntilKill) {
      ::kill(-child_, SIGKILL);
    }
  }

  void listen() {
    std::array<pollfd, 2> waiting = {pollfd{out_.get(), POLLIN, 0}, pollfd{error_.get(), POLLIN, 0}};
    ::poll(waiting.data(), waiting.size(), static_cast<int>(kLook.count()));
    if (waiting[0].revents != 0) read_result();
    if (waiting[1].revents != 0) read_errors();
  }

  // What is too much for a result is counted, not kept.
  void read_result() {
    read(out_, [this](std::string_view bytes) {
      result_bytes_ += bytes.size();
      if (result_bytes_ <= Limits::kBodyBytes) result_ += bytes;
    });
  }
  // The end of it.
  void read_errors() {
    read(error_, [this](std::string_view bytes) {
      errors_ += bytes;
      if (errors_.size() > Limits::kErrorBytes) errors_.erase(0, errors_.size() - Limits::kErrorBytes);
    });
  }

  template <class Take>
  static void read(End& from, Take take) {
    std::array<char, 64 * 1024> buffer;
    while (from.open()) {
      const auto got = ::read(from.get(), buffer.data(), buffer.size());
      if (got < 0) return;
      if (got == 0) return from.close();
      take(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    }
  }

  const pid_t child_;
  End out_, error_;
  Context& context_;
  std::string result_;
  std::uint64_t result_bytes_ = 0;
  std::string errors_;
  std::optional<Clock::time_point> asked_;
};

std::string described(int status, std::string errors) {
  while (!errors.empty() && std::isspace(static_cast<unsigned char>(errors.back())) != 0) errors.pop_back();
  std::string text;
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    text = std::string("killed by SIG") + (name != nullptr ? name : "?");
  } else {
    text = "exit status " + std::to_string(WEXITSTATUS(status));
  }
  return errors.empty() ? text : text + ": " + errors;
}

// 0 once the program has been started: the pipe closes by that. Otherwise errno of exec.
int start_error(const End& failure) {
  int reason = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.get(), &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  return got == sizeof reason ? reason : 0;
}

// Throws std::system_error when it cannot be started.
Conversation start(const ExecOptions& options, Context& context) {
  const End body = file_of(context.job().body);
  Pipe out = make_pipe(), error = make_pipe(), failure = make_pipe();
  std::vector<std::string> command = options.command;
  std::vector<std::string> variables = environment_of(context);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> environment = pointers(variables);
  const pid_t worker = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) fail_start(errno);
  if (child == 0) {
    become(options, arguments.data(), environment.data(), worker, body.get(), out.write.get(), error.write.get(),
           failure.write.get());
  }
  // Both do it, so that it holds for whoever comes first.
  ::setpgid(child, child);
  programs().add(child);
  out.write.close();
  error.write.close();
  failure.write.close();
  if (const int reason = start_error(failure.read)) {
    int ignored = 0;
    while (!programs().reap(child, ignored)) ::poll(nullptr, 0, 1);
    fail_start(reason);
  }
  return {child, std::move(out.read), std::move(error.read), context};
}

Outcome not_started(const ExecOptions& options, const Context& context, int reason) {
  if (options.on_not_started) options.on_not_started(reason);
  return Returned{.after = hold_time(context),
                  .note = "the program " + core::quoted(options.command.front()) +
                          " could not be started: " + ::strerrordesc_np(reason)};
}

}  // namespace

void prepare_for_programs() {
  // Inherited as ignored it would let nobody wait for a program's end.
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  if (const int reason = ProgramGuard::start()) {
    throw Failure{kTryAgain, std::string("cannot start a process: ") + ::strerrordesc_np(reason)};
  }
}

Milliseconds hold_time(const Context& context) {
  // Attempts that no fault was counted for were given back.
  const std::uint32_t held = context.attempt() - 1 - std::min(context.attempt() - 1, context.counts().total());
  return std::min<Milliseconds>(kFirstHold * (1 << std::min(held, 9u)), kLongestHold);
}

bool wait_for_programs() { return programs().wait_until_none(kUntilKill + std::chrono::seconds(1)); }

void kill_all_programs() { programs().kill_all(); }

Outcome run_program(const ExecOptions& options, Context& context) {
  std::optional<Conversation> started;
  try {
    started.emplace(start(options, context));
  } catch (const std::system_error& error) {
    return not_started(options, context, error.code().value());
  }
  Conversation& conversation = *started;
  const int status = conversation.run();
  std::string text = described(status, conversation.take_errors());
  if (conversation.stopped()) throw std::runtime_error("stopped before it had finished: " + text);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    if (conversation.result_bytes() > Limits::kBodyBytes) {
      throw std::runtime_error("the result has " + std::to_string(conversation.result_bytes()) + " bytes; at most " +
                               std::to_string(Limits::kBodyBytes) + " are allowed");
    }
    context.set_result(conversation.take_result());
    return Done{};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitDead) return dead(std::move(text));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitRetry) text += " (asked for a retry)";
  throw std::runtime_error(text);
}

}  // namespace bide::cli
