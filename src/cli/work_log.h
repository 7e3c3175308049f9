// WorkLog: what `bide work` tells about its attempts: lines for people on stderr, or one JSON object a line on stdout.

#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "bide/worker.h"
#include "cli/json.h"

namespace bide::cli {

// Safe to share between threads.
class WorkLog {
 public:
  struct Options {
    bool json = false;
    bool quiet = false;  // Nothing about single attempts.
  };
  explicit WorkLog(Options options) : options_(options) {}

  void started(const Context& context);
  // By its real end: a result that is too large, for instance, is a failure whatever the program said.
  void finished(const Finished& finished);
  void problem(std::string_view text);
  // At the end, what --drain left behind.
  void left(std::string_view queue, const std::string& why, std::uint64_t jobs, bool at_least);

 private:
  void write(const std::string& line, const JsonObject& json);

  const Options options_;
  std::mutex mutex_;  // One line at a time.
};

}  // namespace bide::cli
