// Arbitrary bytes as a journal and as records. The first byte chooses:
//
//   0          the rest is the only segment of a journal
//   1          the rest is what follows a whole segment's header
//   2 and on   the rest is the payload of a record of that type (modulo the number of types)
//
// Whatever is opened must be good to be written to and opened again; whatever is decoded must survive being encoded.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/journal/layout.h"
#include "engine/journal/records.h"
#include "support/simulated_disk.h"

namespace {

using namespace bide;
using namespace bide::engine::journal;

constexpr char kPath[] = "/journal/0000000000000000.seg";

void require(bool condition) {
  if (!condition) std::abort();
}

Result<std::unique_ptr<Journal>> open(platform::Disk& disk, std::vector<std::string>& seen) {
  seen.clear();
  return Journal::open(disk, "/journal", {.segment_bytes = 4096}, 0, [&](const RecordView& view) -> Status {
    seen.emplace_back(view.payload);
    return {};
  });
}

void open_segment(const std::string& bytes) {
  support::SimulatedDisk disk(1);
  require(disk.make_directory("/journal").has_value());
  require(disk.open(kPath, platform::OpenMode::kCreate).value()->write(0, bytes).has_value());
  std::vector<std::string> first;
  {
    const auto journal = open(disk, first);
    if (!journal) {
      require(disk.contents(kPath) == bytes);
      return;
    }
    (*journal)->begin(200, 1).string("more");
    (*journal)->finish();
    require((*journal)->write() && (*journal)->sync() && (*journal)->idle());
  }
  std::vector<std::string> second;
  const auto again = open(disk, second);
  require(again.has_value() && (*again)->torn_tails().empty());
  require(second.size() == first.size() + 1);
  second.pop_back();
  require(first == second);
}

// Decodes, and if it can, encodes and decodes again: the second encoding is the first.
template <class Record>
void decode_record(RecordType type, std::uint8_t version, std::string_view payload) {
  Record record;
  if (!decode({static_cast<std::uint8_t>(type), version, payload, {64, 0}}, record)) return;
  support::SimulatedDisk disk(1);
  std::vector<std::string> nothing;
  const auto journal = open(disk, nothing);
  const RecordView written = journal.value()->read(append(**journal, record)).value();
  const std::uint8_t written_version = written.version;
  const std::string once(written.payload);
  Record back;
  require(decode({static_cast<std::uint8_t>(type), written_version, once, {64, 0}}, back).has_value());
  require((*journal)->read(append(**journal, back)).value().payload == once);
}

void decode_any(std::uint8_t choice, std::string_view payload) {
  const auto version = static_cast<std::uint8_t>(1 + choice / 128);
  switch (static_cast<RecordType>(choice % 13)) {
    case RecordType::kAccepted: {
      AcceptedBrief brief;
      Accepted whole;
      const RecordView view{static_cast<std::uint8_t>(RecordType::kAccepted), version, payload, {64, 0}};
      if (decode(view, whole)) require(decode(view, brief).has_value() && brief.id == whole.job.id);
      return decode_record<Accepted>(RecordType::kAccepted, version, payload);
    }
    case RecordType::kGranted:
      return decode_record<Granted>(RecordType::kGranted, version, payload);
    case RecordType::kChanged:
      return decode_record<Changed>(RecordType::kChanged, version, payload);
    case RecordType::kDone:
      return decode_record<DoneRecord>(RecordType::kDone, version, payload);
    case RecordType::kRemoved:
      return decode_record<Removed>(RecordType::kRemoved, version, payload);
    case RecordType::kQueue:
      return decode_record<QueueRecord>(RecordType::kQueue, version, payload);
    case RecordType::kClock:
      return decode_record<ClockStep>(RecordType::kClock, version, payload);
    case RecordType::kMoved:
      return decode_record<Moved>(RecordType::kMoved, version, payload);
    case RecordType::kCancelAsked:
      return decode_record<CancelAsked>(RecordType::kCancelAsked, version, payload);
    case RecordType::kDelivered:
      return decode_record<Delivered>(RecordType::kDelivered, version, payload);
    case RecordType::kBound:
      return decode_record<Binding>(RecordType::kBound, version, payload);
    case RecordType::kMark:
      return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 0) {
    open_segment(rest);
  } else if (data[0] == 1) {
    open_segment(encode(SegmentHeader{}) + rest);
  } else {
    decode_any(data[0], rest);
  }
  return 0;
}
