// Stopwatch: time since it was made.

#pragma once

#include <chrono>

namespace bide::bench {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double microseconds() const { return seconds() * 1e6; }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace bide::bench
