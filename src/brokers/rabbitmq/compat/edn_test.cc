#include "brokers/rabbitmq/compat/edn.h"

#include <gtest/gtest.h>

#include "brokers/rabbitmq/compat/compat_test_bytes.h"

namespace bide::brokers::rabbitmq::compat {
namespace {

TEST(Edn, WhatIsWrittenReadsBackToTheSame) {
  for (const char* text : {
           "nil",
           "true",
           "false",
           "0",
           "-17",
           "9223372036854775807",
           "1.5",
           "1.0",
           "1e+100",
           "##Inf",
           "##-Inf",
           "\"a \\\"quoted\\\" \\\\ text\\n\"",
           ":keyword",
           ":name.space/keyword",
           "symbol",
           "\\a",
           "\\newline",
           "\\u20ac",
           "[]",
           "[1 2 [3]]",
           "()",
           "(1 \"two\")",
           "#{:a :b}",
           "{}",
           "{:a 1, \"b\" [2]}",
           "#uuid \"01020304-0506-0708-090a-0b0c0d0e0f10\"",
           "#inst \"2026-01-02T03:04:05.678Z\"",
           "#bide/bytes \"00ff\"",
           "#bide/nippy \"2c000000020102\"",
       }) {
    const Result<ClojureValue> value = parse_edn(text);
    ASSERT_TRUE(value) << text << ": " << value.error().message;
    EXPECT_EQ(to_edn(*value), text);
  }
}

TEST(Edn, CommasCommentsAndWhatIsDiscardedDoNotMatter) {
  const Result<ClojureValue> value = parse_edn(" ; head\n{:a,1 #_(ignored [2]) :b 2 ; tail\n}\n");
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(to_edn(*value), "{:a 1, :b 2}");
}

TEST(Edn, MistakesAreRefusedWithTheirPlace) {
  for (const char* text : {"", "{:a}", "[1", ")", "\"open", "\"\\x\"", "1 2", "1/2", "3N", "#unknown 1", "#uuid \"no\"",
                           "#bide/nippy \"51\"", "#bide/bytes \"0\"", ":", "12abc", "99999999999999999999"}) {
    const Result<ClojureValue> value = parse_edn(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(value.error().message.find("at byte"), std::string::npos) << value.error().message;
  }
  EXPECT_FALSE(parse_edn(std::string(100'000, '[')));
  std::string discards;
  for (int i = 0; i < 100'000; ++i) discards += "#_";
  EXPECT_FALSE(parse_edn(discards));
}

TEST(Edn, HostileTextNeverCrashes) {
  const std::string seed =
      "{:a [1 2.5 \"t\\n\"], :b #{\\a \\u20ac}, :c (#uuid \"01020304-0506-0708-090a-0b0c0d0e0f10\")}";
  Mutator mutator(2);
  int readable = 0;
  for (int i = 0; i < 50'000; ++i) {
    const Result<ClojureValue> value = parse_edn(mutator.mutate(seed));
    if (!value) continue;
    ++readable;
    (void)to_edn(*value);
  }
  EXPECT_GT(readable, 0);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
