// A certificate that signs itself, written to two files. Each has a name of its own, so that a test can tell them apart.

#pragma once

#include <string>

namespace bide::server_tests {

// Throws when it cannot be made.
void write_certificate(const std::string& certificate_file, const std::string& key_file, const std::string& name);

}  // namespace bide::server_tests
