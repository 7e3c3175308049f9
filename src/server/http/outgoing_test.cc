#include "server/http/outgoing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "server/http/content_coding.h"

namespace bide::server {
namespace {

// Takes a few bytes at a time, then none until it is asked again.
class NarrowChannel : public Channel {
 public:
  Transfer handshake() override { return {}; }
  Transfer read(char*, std::size_t) override { return {.state = Transfer::State::kWantsRead}; }
  Transfer write(std::string_view bytes, bool more) override {
    if (fails) return {.state = Transfer::State::kFailed};
    if (std::exchange(is_full_, !is_full_)) return {.state = Transfer::State::kWantsWrite};
    const std::size_t taken = std::min(bytes.size(), width);
    text.append(bytes.substr(0, taken));
    said_more = said_more || more;
    return {.bytes = taken};
  }
  bool has_buffered() const override { return false; }
  void end() override {}

  std::string text;
  std::size_t width = 7;
  bool fails = false;
  bool said_more = false;

 private:
  bool is_full_ = false;
};

void write_all(Outgoing& out, NarrowChannel& channel) {
  while (out.write(channel).state == Transfer::State::kWantsWrite) continue;
}

std::string sent(Response response, const AnswerForm& form = {}) {
  Outgoing out;
  NarrowChannel channel;
  out.begin(std::move(response), form);
  write_all(out, channel);
  EXPECT_EQ(out.written(), channel.text.size());
  return channel.text;
}
std::string body_of(const std::string& text) { return text.substr(text.find("\r\n\r\n") + 4); }
bool has(const std::string& text, std::string_view line) { return text.find(line) != std::string::npos; }

Response text_of(std::size_t bytes) { return {.content_type = "text/plain", .body = std::string(bytes, 'a')}; }

TEST(Outgoing, AnAnswerArrivesWholeHoweverLittleIsTakenAtATime) {
  for (const std::size_t size : {0u, 5u, 16u * 1024, 16u * 1024 + 1, 100'000u}) {
    const std::string text = sent(text_of(size));
    EXPECT_TRUE(has(text, "Content-Length: " + std::to_string(size) + "\r\n"));
    EXPECT_TRUE(body_of(text) == std::string(size, 'a')) << size;
  }
}

TEST(Outgoing, ALargeBodyIsNotCopiedBehindItsHead) {
  Outgoing out;
  NarrowChannel channel;
  channel.width = 1'000'000;
  out.begin(text_of(100'000), {});
  EXPECT_GT(out.bytes(), 100'000u);
  write_all(out, channel);
  EXPECT_TRUE(channel.said_more) << "the head need not be sent alone";
}

TEST(Outgoing, TheAnswerToHeadHasTheLengthButNotTheBody) {
  const std::string text = sent(text_of(5'000), {.method = Method::kHead, .takes_gzip = true});
  EXPECT_TRUE(has(text, "Content-Length: 5000\r\n")) << text;
  EXPECT_EQ(body_of(text), "");
}

TEST(Outgoing, NoContentHasNeitherBodyNorLength) {
  const std::string text = sent({.status = 204, .body = "ignored"});
  EXPECT_FALSE(has(text, "Content-Length")) << text;
  EXPECT_EQ(body_of(text), "");
}

TEST(Outgoing, WhatIsWorthItIsCompressedForThoseWhoTakeIt) {
  const std::string zipped = sent(text_of(5'000), {.takes_gzip = true});
  EXPECT_TRUE(has(zipped, "Content-Encoding: gzip\r\n") && has(zipped, "Vary: Accept-Encoding\r\n")) << zipped;
  std::string unzipped;
  const auto append = [&unzipped](std::string_view piece) {
    unzipped += piece;
    return true;
  };
  EXPECT_EQ(Gunzip().push(body_of(zipped), append), Gunzip::Result::kOk);
  EXPECT_EQ(unzipped, std::string(5'000, 'a'));

  const std::string plain = sent(text_of(5'000));
  EXPECT_TRUE(!has(plain, "Content-Encoding") && has(plain, "Vary: Accept-Encoding\r\n"));
  EXPECT_FALSE(has(sent(text_of(100), {.takes_gzip = true}), "Content-Encoding")) << "too small";
  EXPECT_FALSE(has(sent(text_of(2'000'000), {.takes_gzip = true}), "Content-Encoding")) << "too large";
  Response image = text_of(5'000);
  image.content_type = "image/png";
  EXPECT_FALSE(has(sent(image, {.takes_gzip = true}), "Content-Encoding"));
  Response coded = text_of(5'000);
  coded.fields = {{"Content-Encoding", "br"}};
  EXPECT_FALSE(has(sent(coded, {.takes_gzip = true}), "gzip"));
}

TEST(Outgoing, AStreamComesInChunksAndEndsWithTheLast) {
  Outgoing out;
  NarrowChannel channel;
  out.begin_stream({.content_type = "text/event-stream"}, {});
  write_all(out, channel);
  EXPECT_TRUE(has(channel.text, "Transfer-Encoding: chunked\r\n")) << channel.text;
  EXPECT_TRUE(out.is_empty());
  out.add("hello", false);
  out.add("", false);
  out.add(" world", true);
  write_all(out, channel);
  EXPECT_EQ(body_of(channel.text), "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
}

TEST(Outgoing, WhatIsAddedWhileSomethingIsOnItsWayComesBehindIt) {
  Outgoing out;
  NarrowChannel channel;
  out.begin_stream({}, {});
  EXPECT_EQ(out.write(channel).state, Transfer::State::kWantsWrite);
  out.add("late", false);
  write_all(out, channel);
  EXPECT_EQ(body_of(channel.text), "4\r\nlate\r\n");
}

TEST(Outgoing, ToOldClientsAStreamIsAllThatComesUntilTheEnd) {
  Outgoing out;
  NarrowChannel channel;
  out.begin_stream({}, {.is_http_1_0 = true, .keep_alive = false});
  out.add("hello", false);
  out.add(" world", true);
  write_all(out, channel);
  EXPECT_EQ(body_of(channel.text), "hello world");
}

TEST(Outgoing, AStreamBeforeLeavesNothingBehind) {
  Outgoing out;
  NarrowChannel channel;
  out.begin_stream({}, {});
  out.release();
  channel.text.clear();
  out.begin({.body = "next"}, {});
  write_all(out, channel);
  EXPECT_EQ(body_of(channel.text), "next");
}

TEST(Outgoing, AChannelThatFailsIsToldOf) {
  Outgoing out;
  NarrowChannel channel;
  channel.fails = true;
  out.begin(text_of(5), {});
  EXPECT_EQ(out.write(channel).state, Transfer::State::kFailed);
}

}  // namespace
}  // namespace bide::server
