// kill_run: producers and workers in processes of their own, on one broker, under load, while some of them are killed
// and others paused; then everything is healed and drained, and the histories are held against what is there.
//
//   kill_run [--seconds N] [--url URL] [--seed N] [--rate JOBS_A_SECOND] [--keep]
//
// The URL is that of an empty broker; without one it is an embedded store in a directory of its own. Ends with 0 when
// all was well, 1 when it was not, and 2 when it was no test: too little load, or a fault that did not fire.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "bide/client.h"
#include "crash/checker.h"
#include "crash/processes.h"
#include "crash/read_back.h"
#include "support/seeded_random.h"
#include "support/temporary_directory.h"

namespace bide::crash {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kProducers = 2;
constexpr int kWorkers = 3;
constexpr auto kPause = 4500ms;  // The children's leases last 3000 ms.
constexpr auto kDrainAtMost = 180s;

struct Settings {
  int seconds = 20;
  std::string url = {};
  std::uint64_t seed = static_cast<std::uint64_t>(now_us());
  int rate = 600;  // Of all producers together.
  bool keep = false;
};

// A process that is replaced by another of the same role when it is gone; each has a name of its own.
struct Post {
  std::string role;  // "producer" or "worker", with a number.
  std::vector<std::string> arguments;
  int incarnation = 0;
  std::string name = {};
};

class Run {
 public:
  Run(const Settings& settings, const std::string& url, const std::string& histories)
      : settings_(settings),
        url_(url),
        histories_(histories),
        random_(settings.seed),
        processes_(BIDE_CRASH_CHILD, url, histories) {
    for (int i = 0; i < kProducers; ++i) {
      posts_.push_back({"producer" + std::to_string(i), {"produce", std::to_string(settings.rate / kProducers)}});
    }
    for (int i = 0; i < kWorkers; ++i) posts_.push_back({"worker" + std::to_string(i), {"work"}});
  }

  void harm() {
    for (Post& post : posts_) fill(post);
    const auto end = steady_clock::now() + std::chrono::seconds(settings_.seconds);
    while (steady_clock::now() < end) {
      sleep_up_to(600ms);
      mourn();
      Post& victim = choose();
      if (random_.next_below(8) == 0 && !paused_) {
        processes_.pause(victim.name);
        paused_ = victim.name;
        resume_at_ = steady_clock::now() + kPause;
      } else if (victim.name != paused_) {
        processes_.kill(victim.name);
        sleep_up_to(300ms);
        fill(victim);
      }
      if (paused_ && steady_clock::now() >= resume_at_) resume();
    }
    if (paused_) resume();
  }

  void drain() {
    for (const Post& post : posts_) {
      if (post.role.starts_with("producer")) end(post.name);
    }
    const auto opens_until = steady_clock::now() + kDrainAtMost;
    auto client = Client::open(url_);
    // A server that was killed a moment ago may still be reading its data.
    while (!client && client.error().code == ErrorCode::kUnavailable && steady_clock::now() < opens_until) {
      std::this_thread::sleep_for(100ms);
      client = Client::open(url_);
    }
    if (!client) throw std::runtime_error("the broker does not open: " + client.error().message);
    can_ = client->broker().capabilities();
    const auto until = steady_clock::now() + kDrainAtMost;
    while (steady_clock::now() < until && !is_drained(*client)) std::this_thread::sleep_for(100ms);
    for (const Post& post : posts_) {
      if (post.role.starts_with("worker")) end(post.name);
    }
    readback_ = read_back(can_, client->inspector());
  }

  Findings findings() const { return check(read_histories(histories_), readback_, can_); }
  const std::vector<std::string>& surprises() const { return surprises_; }

 private:
  void sleep_up_to(std::chrono::milliseconds most) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(random_.next_below(static_cast<std::uint64_t>(most.count()))));
  }

  void fill(Post& post) {
    post.name = post.role + "." + std::to_string(++post.incarnation);
    processes_.spawn(post.name, post.arguments);
  }

  // Nobody ends by itself.
  void mourn() {
    for (const auto& [name, code] : processes_.reap()) {
      surprises_.push_back(name + " ended by itself, with " + std::to_string(code));
      for (Post& post : posts_) {
        if (post.name == name) fill(post);
      }
    }
  }

  Post& choose() {
    const auto owner = processes_.owner();
    if (owner && random_.next_below(5) < 2) {
      for (Post& post : posts_) {
        if (post.name == *owner) return post;
      }
    }
    // Workers more often than producers.
    return posts_[random_.next_below(10) == 0 ? random_.next_below(kProducers)
                                              : kProducers + random_.next_below(kWorkers)];
  }

  void resume() {
    if (processes_.runs(*paused_)) processes_.resume(*paused_);
    paused_.reset();
  }

  void end(const std::string& name) {
    processes_.terminate(name);
    const auto code = processes_.wait(name, 60s);
    const bool producer = name.starts_with("producer");  // Ended by the signal itself.
    if (!code || *code != (producer ? 128 + 15 : 0)) {
      surprises_.push_back(name + (code ? " ended with " + std::to_string(*code) : " did not end") + " when asked to");
    }
  }

  bool is_drained(const Client& client) {
    mourn();
    if (can_.inspect) return count_unfinished(client.inspector()) == 0;
    // Nothing has happened for longer than any wait there is.
    std::uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(histories_)) bytes += entry.file_size();
    if (bytes != quiet_bytes_) quiet_since_ = steady_clock::now();
    quiet_bytes_ = bytes;
    return steady_clock::now() - quiet_since_ > 30s;
  }

  const Settings& settings_;
  const std::string url_;
  const std::string histories_;
  support::SeededRandom random_;
  Processes processes_;
  std::vector<Post> posts_;
  std::optional<std::string> paused_;
  steady_clock::time_point resume_at_;
  std::uintmax_t quiet_bytes_ = 0;
  steady_clock::time_point quiet_since_;
  Capabilities can_;
  Readback readback_;
  std::vector<std::string> surprises_;
};

Settings read_settings(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--keep") {
      settings.keep = true;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument(word + ": unknown, or without a value");
    const std::string value = argv[++i];
    if (word == "--seconds")
      settings.seconds = std::stoi(value);
    else if (word == "--url")
      settings.url = value;
    else if (word == "--seed")
      settings.seed = std::stoull(value);
    else if (word == "--rate")
      settings.rate = std::stoi(value);
    else
      throw std::invalid_argument(word + ": unknown");
  }
  return settings;
}

// What was missing for this to have been a test.
std::string shortfall(const Settings& settings, const Findings& findings, bool has_owner) {
  const auto seconds = static_cast<std::uint64_t>(settings.seconds);
  std::string missing;
  const auto need = [&missing](const char* what, std::uint64_t count, std::uint64_t least) {
    if (count >= least) return;
    missing += std::string(missing.empty() ? "" : "; ") + what + " " + std::to_string(count) + ", at least " +
               std::to_string(least) + " are needed";
  };
  const auto counted = [](const std::map<std::string, std::uint64_t>& counts, const char* name) {
    const auto found = counts.find(name);
    return found == counts.end() ? 0 : found->second;
  };
  need("confirmed", findings.confirmed, seconds * 40);
  need("accepted outcomes", findings.accepted_outcomes, seconds * 40);
  need("kills of a guest", counted(findings.kills, "guest"), 1 + seconds / 10);
  if (has_owner) need("kills of the owner", counted(findings.kills, "owner"), 1 + seconds / 20);
  need("duplicates by a crash", counted(findings.duplicates, "crashed"), 1);
  need("effects", findings.effects, 1);
  return missing;
}

int run(const Settings& settings) {
  std::optional<support::TemporaryDirectory> temporary;
  std::string directory;
  if (settings.keep) {
    directory = (std::filesystem::temp_directory_path() / ("kill_run." + std::to_string(settings.seed))).string();
  } else {
    directory = temporary.emplace().path();
  }
  std::filesystem::create_directories(directory + "/histories");
  const bool embedded = settings.url.empty();
  // Everything that is done must be there to be read back.
  const std::string url =
      embedded ? "bide:" + directory + "/store?done_limit=100000000&result_retention=1000h" : settings.url;
  std::printf("kill_run: seed %llu, %d s\n", static_cast<unsigned long long>(settings.seed), settings.seconds);
  if (settings.keep) std::printf("kept in %s\n", directory.c_str());

  Run one(settings, url, directory + "/histories");
  one.harm();
  one.drain();
  const Findings findings = one.findings();
  std::printf("%s", findings.report().c_str());
  for (const std::string& surprise : one.surprises()) std::printf("  %s\n", surprise.c_str());
  if (findings.violation_count() > 0 || !one.surprises().empty()) return 1;
  if (const std::string missing = shortfall(settings, findings, embedded); !missing.empty()) {
    std::printf("invalid: %s\n", missing.c_str());
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace bide::crash

int main(int argc, char** argv) {
  try {
    return bide::crash::run(bide::crash::read_settings(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kill_run: %s\n", error.what());
    return 1;
  }
}
