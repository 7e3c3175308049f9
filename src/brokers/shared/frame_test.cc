#include "brokers/shared/frame.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace bide::brokers::shared {
namespace {

void feed(FrameReader& reader, std::string_view bytes) {
  std::memcpy(reader.room(bytes.size()), bytes.data(), bytes.size());
  reader.filled(bytes.size());
}

std::string frame_with(const std::string& text, std::uint64_t number) {
  return make_frame(FrameType::kFind, number, [&](core::Encoder& out) { out.raw(text); });
}

TEST(FrameReader, FindsFramesHoweverTheBytesArrive) {
  std::string stream;
  for (std::uint64_t i = 0; i < 50; ++i) stream += frame_with(std::string(i * 7, 'x'), i);
  for (const std::size_t step : {1u, 2u, 3u, 5u, 13u, 64u, 1000u, 100'000u}) {
    FrameReader reader;
    std::uint64_t seen = 0;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      feed(reader, std::string_view(stream).substr(at, step));
      Frame frame;
      while (reader.next(frame) == FrameReader::Next::kFrame) {
        EXPECT_EQ(frame.type, FrameType::kFind);
        EXPECT_EQ(frame.number, seen);
        EXPECT_EQ(frame.payload, std::string(seen * 7, 'x'));
        ++seen;
      }
    }
    EXPECT_EQ(seen, 50u);
    EXPECT_EQ(reader.waiting(), 0u);
  }
}

TEST(FrameReader, RefusesALengthThatCannotBe) {
  for (const std::uint32_t length : {0u, 8u, static_cast<std::uint32_t>(kFrameBytes + 1), 0xffffffffu}) {
    std::string bytes;
    core::Encoder(bytes).u32(length);
    FrameReader reader;
    feed(reader, bytes);
    Frame frame;
    EXPECT_EQ(reader.next(frame), FrameReader::Next::kTooLong) << length;
  }
}

TEST(FrameReader, AClaimAloneTakesNoMemory) {
  std::string bytes;
  core::Encoder(bytes).u32(static_cast<std::uint32_t>(kFrameBytes));
  FrameReader reader;
  feed(reader, bytes);
  Frame frame;
  EXPECT_EQ(reader.next(frame), FrameReader::Next::kMore);
  EXPECT_EQ(reader.waiting(), bytes.size());
}

}  // namespace
}  // namespace bide::brokers::shared
