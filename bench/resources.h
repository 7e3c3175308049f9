// What something takes from the machine: time, and memory and disk as the kernel counts them.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace bide::bench {

// RssAnon: memory that is resident and not the page cache of some file. What the allocator keeps for later is given
// back first: after a load that is the benchmark's own garbage.
std::uint64_t resident_bytes();
// The same of another process, by its number, with whatever its allocator keeps.
std::uint64_t resident_bytes_of(const std::string& process);
double cpu_seconds();  // User and system, all threads.
// Blocks taken by a directory and everything in it.
std::uint64_t directory_bytes(const std::string& directory);

// Time since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double microseconds() const { return seconds() * 1e6; }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace bide::bench
