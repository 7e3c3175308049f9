#include "core/did_you_mean.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace bide::core {
namespace {

constexpr std::array<std::string_view, 7> kWords = {"kind", "queue", "body", "delay", "due", "retry", "priority"};

TEST(DidYouMean, FindsAWordWithALetterMissingAddedChangedOrSwapped) {
  EXPECT_EQ(nearest_word("qeue", kWords), "queue");
  EXPECT_EQ(nearest_word("queuee", kWords), "queue");
  EXPECT_EQ(nearest_word("dekay", kWords), "delay");
  EXPECT_EQ(nearest_word("rerty", kWords), "retry");
  EXPECT_EQ(nearest_word("pritority", kWords), "priority");
}

TEST(DidYouMean, CaseDoesNotMatter) { EXPECT_EQ(nearest_word("QUEUE", kWords), "queue"); }

TEST(DidYouMean, OfTwoEquallyNearTheFirstIsTaken) {
  constexpr std::array<std::string_view, 2> words = {"bare", "bark"};
  EXPECT_EQ(nearest_word("barn", words), "bare");
}

TEST(DidYouMean, TheNearestWinsOverAnEarlierOne) {
  constexpr std::array<std::string_view, 2> words = {"resumed", "resume"};
  EXPECT_EQ(nearest_word("resum", words), "resume");
}

TEST(DidYouMean, AWordThatWasNotFinishedIsCompletedWhenOnlyOneBeginsSo) {
  constexpr std::array<std::string_view, 3> words = {"enqueue", "resume", "reschedule"};
  EXPECT_EQ(nearest_word("enq", words), "enqueue");
  EXPECT_EQ(nearest_word("re", words), std::nullopt);
  EXPECT_EQ(nearest_word("e", words), std::nullopt);
}

TEST(DidYouMean, NothingIsSuggestedForWhatResemblesNothing) {
  EXPECT_EQ(nearest_word("banana", kWords), std::nullopt);
  EXPECT_EQ(nearest_word("", kWords), std::nullopt);
  EXPECT_EQ(nearest_word("xy", kWords), std::nullopt);
  EXPECT_EQ(nearest_word(std::string(100'000, 'q'), kWords), std::nullopt);
  EXPECT_EQ(nearest_word("queue", {}), std::nullopt);
}

TEST(DidYouMean, IsTheEndOfAMessageOrNothing) {
  EXPECT_EQ(did_you_mean("qeue", kWords), "; did you mean 'queue'?");
  EXPECT_EQ(did_you_mean("banana", kWords), "");
}

}  // namespace
}  // namespace bide::core
