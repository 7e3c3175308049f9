// The example in docs/formats/journal.md is what the code writes, byte for byte.

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "engine/journal/records.h"
#include "support/simulated_disk.h"

namespace bide::engine::journal {
namespace {

// A job is accepted, to run five seconds later; a worker gets it and reports that it is done; the store is closed.
std::string write_example() {
  support::SimulatedDisk disk(1);
  {
    auto journal =
        std::move(Journal::open(disk, "/journal", {}, 0, [](const RecordView&) { return Status(); })).value();
    Accepted accepted;
    accepted.job.id = JobId::parse("01977420-dc00-7abc-8def-0123456789ab").value();
    accepted.job.kind = "greet";
    accepted.job.body = "hello";
    accepted.how.accepted_ms = 1'750'000'000'000;
    accepted.how.due_ms = accepted.how.accepted_ms + 5000;
    append(*journal, accepted);
    journal->write().value();
    journal->sync().value();
    append(*journal, Granted{accepted.how.due_ms, false, "w1", {{accepted.job.id, 1}}});
    append(*journal, DoneRecord{accepted.job.id, 1, accepted.how.due_ms + 20, 1, {}, {}, {}});
    journal->write().value();
    journal->sync().value();
  }
  return disk.contents("/journal/0000000000000000.seg");
}

// The bytes of the block marked `hex`: on each line an offset, two spaces, bytes, and perhaps two spaces and a remark.
std::string read_example(std::string& wrong_offsets) {
  std::ifstream page(BIDE_FORMAT_PAGE);
  std::string bytes;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      inside = line == "```hex";
      continue;
    }
    if (!inside || line.empty()) continue;
    if (std::stoul(line.substr(0, 4), nullptr, 16) != bytes.size()) wrong_offsets += line + "\n";
    const std::string digits = line.substr(6, line.find("  ", 6) - 6);
    for (std::size_t i = 0; i + 1 < digits.size(); i += 3) {
      bytes.push_back(static_cast<char>(std::stoul(digits.substr(i, 2), nullptr, 16)));
    }
  }
  return bytes;
}

std::string hex(const std::string& bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    char text[16];
    std::snprintf(text, sizeof text, i % 16 == 0 ? "\n%04zx  " : " ", i);
    out += text;
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
    out += text;
  }
  return out;
}

TEST(FormatPage, TheExampleIsWhatTheCodeWrites) {
  std::string wrong_offsets;
  const std::string documented = read_example(wrong_offsets);
  EXPECT_EQ(wrong_offsets, "");
  EXPECT_EQ(hex(write_example()), hex(documented));
}

}  // namespace
}  // namespace bide::engine::journal
