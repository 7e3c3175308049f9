// The end of the demo: what became of every job.

#pragma once

#include <string>

#include "bide/client.h"

namespace bide::cli {

// As text, or as JSON. Throws Failure.
std::string demo_summary(const Client& client, double seconds, bool json);

}  // namespace bide::cli
