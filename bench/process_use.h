// What this process takes from the machine, as the kernel counts it.

#pragma once

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

}  // namespace bide::bench
