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
#include "core/quote.h"
#include "platform/descriptor.h"

extern char** environ;

namespace bide::cli {

namespace {

using Clock = std::chrono::steady_clock;
using platform::Descriptor;

constexpr int kExitDead = 65;
constexpr int kExitRetry = 75;
constexpr int kExitNotStarted = 127;
constexpr auto kFirstHold = std::chrono::seconds(1);
constexpr auto kLongestHold = std::chrono::minutes(5);
constexpr auto kLook = std::chrono::milliseconds(50);  // How often an attempt asks whether it is to stop.
constexpr auto kUntilKill = std::chrono::seconds(2);

// A process beside the worker that kills the worker's programs, and all they have started, when the worker dies without
// having done so itself. It reads the numbers of their process groups from a pipe that only the worker can write to, and
// whose end is the worker's. Each program's process registers itself before it becomes the program, so that none is
// missed.
class ProgramGuard {
 public:
  // Before the process has files or locks that must end with it, and before it has threads. Returns 0 or errno.
  static int start() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
    const pid_t child = ::fork();
    const int reason = errno;
    if (child == 0) {
      ::close(ends[1]);
      run(ends[0]);
    }
    ::close(ends[0]);
    if (child > 0) {
      to_guard_ = ends[1];
      return 0;
    }
    ::close(ends[1]);
    return reason;
  }
  // In the process that leads the group. Safe between fork and exec.
  static void watch(pid_t group) { send(group); }
  // Before its leader is waited for, as long as nobody else can have the number.
  static void forget(pid_t group) { send(-group); }

 private:
  // Positive: watch this group; negative: forget it. Few bytes are written in one piece.
  static void send(pid_t message) {
    if (to_guard_ < 0) return;
    while (::write(to_guard_, &message, sizeof message) < 0 && errno == EINTR) {
    }
  }

  [[noreturn]] static void run(int from_worker) {
    // Signals to the worker's terminal or service are not meant for it: it ends with the worker.
    ::setpgid(0, 0);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
    ::prctl(PR_SET_NAME, "bide-guard");
    std::set<pid_t> groups;
    for (;;) {
      pid_t message = 0;
      const auto got = ::read(from_worker, &message, sizeof message);
      if (got < 0 && errno == EINTR) continue;
      if (got != sizeof message) break;
      if (message > 0) {
        groups.insert(message);
      } else {
        groups.erase(-message);
      }
    }
    for (const pid_t group : groups) ::kill(-group, SIGKILL);
    ::_exit(0);
  }

  static inline int to_guard_ = -1;
};

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

struct Pipe {
  Descriptor read;
  Descriptor write;
};

[[noreturn]] void fail_start(int reason) { throw std::system_error(reason, std::generic_category()); }

// Not one of the numbers that a program has its standard streams under, should they be free here.
Descriptor above_standard(Descriptor opened) {
  if (!opened.valid()) fail_start(errno);
  if (opened.get() > STDERR_FILENO) return opened;
  return above_standard(Descriptor(::fcntl(opened.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1)));
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_start(errno);
  Descriptor read(ends[0]), write(ends[1]);
  return {above_standard(std::move(read)), above_standard(std::move(write))};
}

// A file, not a pipe: should the worker die, its program must not take what it got so far for all of it.
Descriptor body_file(const std::string& body) {
  Descriptor file = above_standard(Descriptor(::memfd_create("bide-body", MFD_CLOEXEC)));
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
[[noreturn]] void exec_program(const ExecOptions& options, char* const* arguments, char* const* variables, pid_t worker,
                               int in, int out, int error, int failure) {
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

// A program that was started: reads its output, and stops it when the attempt is to stop.
class RunningProgram {
 public:
  RunningProgram(pid_t child, Descriptor out, Descriptor error, Context& context)
      : child_(child), out_(std::move(out)), error_(std::move(error)), context_(context) {
    for (const int descriptor : {out_.get(), error_.get()}) ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  }

  // The status of waitpid, once the program has ended.
  int run() {
    for (;;) {
      stop_if_asked();
      read_output();
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

  void read_output() {
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
  static void read(Descriptor& from, Take take) {
    std::array<char, 64 * 1024> buffer;
    while (from.valid()) {
      const auto got = ::read(from.get(), buffer.data(), buffer.size());
      if (got < 0) return;
      if (got == 0) from = Descriptor();
      take(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    }
  }

  const pid_t child_;
  Descriptor out_, error_;
  Context& context_;
  std::string result_;
  std::uint64_t result_bytes_ = 0;
  std::string errors_;
  std::optional<Clock::time_point> asked_;
};

std::string end_text(int status, std::string errors) {
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
int start_error(const Descriptor& failure) {
  int reason = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.get(), &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  return got == sizeof reason ? reason : 0;
}

// Throws std::system_error when it cannot be started.
RunningProgram start(const ExecOptions& options, Context& context) {
  const Descriptor body = body_file(context.job().body);
  Pipe out = make_pipe(), error = make_pipe(), failure = make_pipe();
  std::vector<std::string> command = options.command;
  std::vector<std::string> variables = environment_of(context);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> environment = pointers(variables);
  const pid_t worker = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) fail_start(errno);
  if (child == 0) {
    exec_program(options, arguments.data(), environment.data(), worker, body.get(), out.write.get(), error.write.get(),
           failure.write.get());
  }
  // Both do it, so that it holds for whoever comes first.
  ::setpgid(child, child);
  programs().add(child);
  for (Pipe* pipe : {&out, &error, &failure}) pipe->write = Descriptor();
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
  std::optional<RunningProgram> started;
  try {
    started.emplace(start(options, context));
  } catch (const std::system_error& error) {
    return not_started(options, context, error.code().value());
  }
  RunningProgram& program = *started;
  const int status = program.run();
  std::string text = end_text(status, program.take_errors());
  if (program.stopped()) throw std::runtime_error("stopped before it had finished: " + text);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    if (program.result_bytes() > Limits::kBodyBytes) {
      throw std::runtime_error("the result has " + std::to_string(program.result_bytes()) + " bytes; at most " +
                               std::to_string(Limits::kBodyBytes) + " are allowed");
    }
    context.set_result(program.take_result());
    return Done{};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitDead) return dead(std::move(text));
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitRetry) text += " (asked for a retry)";
  throw std::runtime_error(text);
}

}  // namespace bide::cli
