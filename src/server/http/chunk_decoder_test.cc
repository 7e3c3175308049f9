#include "server/http/chunk_decoder.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::server {
namespace {

using Event = ChunkDecoder::Event;

struct Decoded {
  Event last = Event::kMore;
  std::string data = {};
  std::string rest = {};
};

Decoded decode(std::string_view all, std::size_t piece) {
  ChunkDecoder decoder;
  Decoded decoded;
  for (std::size_t at = 0; at < all.size(); at += piece) {
    std::string_view bytes = all.substr(at, piece);
    do {
      std::string_view data;
      decoded.last = decoder.next(bytes, data);
      if (decoded.last == Event::kData) decoded.data += data;
      if (decoded.last > Event::kData) {
        decoded.rest = std::string(bytes) + std::string(all.substr(std::min(all.size(), at + piece)));
        return decoded;
      }
    } while (decoded.last != Event::kMore);
  }
  return decoded;
}

TEST(ChunkDecoder, PutsTheChunksTogether) {
  constexpr std::string_view kAll = "5\r\nhello\r\n006;name=\"value\"\r\n world\r\nA\r\n0123456789\r\n000\r\n\r\nGET /";
  for (std::size_t piece = 1; piece <= kAll.size(); ++piece) {
    const Decoded decoded = decode(kAll, piece);
    EXPECT_EQ(decoded.last, Event::kEnd);
    EXPECT_EQ(decoded.data, "hello world0123456789");
    EXPECT_EQ(decoded.rest, "GET /");
  }
}

TEST(ChunkDecoder, WaitsForWhatIsMissing) {
  for (const std::string_view cut : {"", "5", "5\r", "5\r\n", "5\r\nhel", "5\r\nhello", "5\r\nhello\r", "0\r\n", "0\r\n\r"}) {
    const Event last = decode(cut, 1).last;
    EXPECT_TRUE(last == Event::kMore) << cut;
  }
}

TEST(ChunkDecoder, RefusesWhatIsNone) {
  for (const std::string_view bad :
       {"\r\n", "x\r\n", "-1\r\n", "+1\r\n", " 5\r\n", "5 \r\n", "0x5\r\n", "5\n", "5\rX", ";a\r\n", "5\r\nhelloX", "5\r\nhello\n",
        "5\r\nhello\rX", "0\r\n\rX", "5;a\nb\r\n", "5;a\rb\r\n", "1000000000000000\r\n", "0000000000000000\r\n"}) {
    for (const std::size_t piece : {1u, 2u, 100u}) EXPECT_EQ(decode(bad, piece).last, Event::kMalformed) << bad;
  }
  EXPECT_EQ(decode("0\r\nX: a\r\n\r\n", 100).last, Event::kTrailers);
  EXPECT_EQ(decode("5;" + std::string(257, 'a'), 100).last, Event::kMalformed);
}

}  // namespace
}  // namespace bide::server
