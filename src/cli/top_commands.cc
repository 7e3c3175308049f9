// bide top: the queues, live.

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "cli/top_view.h"

namespace bide::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRunningLookedAt = 500;

// A terminal that gives keys one by one, for as long as this lives. Elsewhere there are none.
class Keyboard {
 public:
  Keyboard() : is_there_(stdout_is_terminal() && ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!is_there_) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~Keyboard() {
    if (is_there_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  bool is_there() const { return is_there_; }
  // The key that is pressed until then; 0: none.
  char wait_until(Clock::time_point end) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    pollfd waited{is_there_ ? STDIN_FILENO : -1, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    char key = 0;
    return ready > 0 && ::read(STDIN_FILENO, &key, 1) == 1 ? key : '\0';
  }

 private:
  termios before_ = {};
  const bool is_there_;
};

// Columns and lines of the terminal; 0 where there is none.
std::pair<std::size_t, std::size_t> terminal_size() {
  winsize size = {};
  if (!stdout_is_terminal() || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {0, 0};
  return {size.ws_col, size.ws_row};
}

TopLook look_at(const Client& client, double seconds) {
  TopLook look{.at = now(), .seconds = seconds, .queues = queues_of(client), .audit = audit_of(client)};
  const JobFilter running{.states = {JobState::kRunning}, .bodies = false};
  look.running = list_all(client, running, kRunningLookedAt).jobs;
  return look;
}

TopView::Order order_of(const Invocation& call) {
  const std::string name = call.value_or("--sort", "name");
  constexpr std::pair<const char*, TopView::Order> kNames[] = {{"name", TopView::Order::kName},
                                                               {"ready", TopView::Order::kReady},
                                                               {"running", TopView::Order::kRunning},
                                                               {"dead", TopView::Order::kDead},
                                                               {"late", TopView::Order::kLate}};
  for (const auto& [known, order] : kNames) {
    if (name == known) return order;
  }
  fail_usage("--sort: allowed are name, ready, running, dead and late");
}

void show(const Invocation& call, const TopView& view, bool keys) {
  const auto [width, height] = terminal_size();
  if (width != 0 && !call.json()) print("\x1b[H\x1b[2J");
  print(call, view.json(), view.text(width, height, keys));
  std::fflush(stdout);
}

int top(const Invocation& call) {
  const Milliseconds every = call.duration("--every").value_or(std::chrono::seconds(1));
  if (every < Milliseconds(100) || every > std::chrono::hours(24)) fail_usage("--every: allowed is 100ms to 1d");
  const std::int64_t frames = call.number("--frames", 0, 1, 1'000'000'000);
  TopView view;
  view.set_order(order_of(call));
  Client client = open_client(call, Missing::kRefuse);
  const Keyboard keyboard;
  auto before = Clock::now();
  for (std::int64_t shown = 0;;) {
    const auto begun = Clock::now();
    view.add(look_at(client, std::chrono::duration<double>(begun - std::exchange(before, begun)).count()));
    show(call, view, keyboard.is_there());
    if (++shown == frames) return kOk;
    while (Clock::now() < begun + every) {
      const char key = keyboard.wait_until(begun + every);
      if (key == 'q' || key == 'Q') return kOk;
      if (key != 's' && key != 'S') continue;
      view.next_order();
      show(call, view, true);
    }
  }
}

}  // namespace

std::vector<Command> top_commands() {
  return {{.path = "top",
           .summary = "Watch the queues live; end it with q",
           .details =
               "Rates are of the whole store, with their course over the last looks. late: for how long the job that has\n"
               "waited longest has been due. running and workers: what runs at this moment, by kind and by worker. s\n"
               "changes the order of the queues.",
           .flags = {{"--every", "DURATION", "between two looks, 100ms to 1d; default: 1s"},
                     {"--frames", "N", "stop after so many looks, from 1; default: never"},
                     {"--sort", "COLUMN", "name, ready, running, dead or late; default: name"},
                     kUrlFlag,
                     {"--json", "", "each look as a JSON object on a line of stdout"}},
           .run = top}};
}

}  // namespace bide::cli
