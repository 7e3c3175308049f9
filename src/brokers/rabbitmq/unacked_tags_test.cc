#include "brokers/rabbitmq/unacked_tags.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace bide::brokers::rabbitmq {
namespace {

using Acks = std::vector<UnackedTags::Ack>;

UnackedTags with(std::uint64_t tags) {
  UnackedTags book;
  for (std::uint64_t tag = 1; tag <= tags; ++tag) book.delivered(tag);
  return book;
}

TEST(UnackedTags, OneAcknowledgementCoversEverythingWhenAllIsSettled) {
  UnackedTags book = with(5);
  for (const std::uint64_t tag : {3u, 1u, 2u, 5u, 4u}) book.settle(tag);
  EXPECT_EQ(book.flush(), (Acks{{5, true}}));
  EXPECT_TRUE(book.empty());
  EXPECT_EQ(book.flush(), Acks{});
}

TEST(UnackedTags, WhatHasLeftInAnotherWayIsNotAcknowledged) {
  UnackedTags book = with(4);
  book.leave_out(1);
  book.settle(1);
  EXPECT_EQ(book.flush(), Acks{});
  book.leave_out(3);
  book.settle(2);
  book.settle(4);
  EXPECT_EQ(book.flush(), (Acks{{4, true}})) << "3 is not known to the server any more, and is not named";
  EXPECT_TRUE(book.empty());
  book.delivered(5);
  book.leave_out(5);
  EXPECT_TRUE(book.empty());
}

TEST(UnackedTags, WhatLiesBehindAGapIsAcknowledgedAlone) {
  UnackedTags book = with(5);
  for (const std::uint64_t tag : {1u, 2u, 4u}) book.settle(tag);
  EXPECT_EQ(book.flush(), (Acks{{2, true}, {4, false}}));
  book.settle(3);
  EXPECT_EQ(book.flush(), (Acks{{3, false}})) << "4 is known to be settled already, so it must not be named again";
  EXPECT_FALSE(book.empty());
  book.settle(5);
  EXPECT_EQ(book.flush(), (Acks{{5, false}}));
  EXPECT_TRUE(book.empty());
}

TEST(UnackedTags, SettlingTwiceIsSettlingOnce) {
  UnackedTags book = with(2);
  book.settle(2);
  book.settle(2);
  EXPECT_EQ(book.flush(), (Acks{{2, false}}));
  book.settle(2);
  EXPECT_FALSE(book.has_settled());
  book.settle(99);
  EXPECT_FALSE(book.has_settled());
}

// A server that keeps its own books, and refuses a tag it does not know.
RC_GTEST_PROP(UnackedTags, ServerAndBookAgreeWhateverTheOrder, ()) {
  UnackedTags book;
  std::set<std::uint64_t> at_server, not_settled;
  std::uint64_t last = 0;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3));
  for (const int step : steps) {
    if (step == 0) {
      book.delivered(++last);
      at_server.insert(last);
      not_settled.insert(last);
    } else if (step == 1 && !not_settled.empty()) {
      auto chosen = not_settled.begin();
      std::advance(chosen, *rc::gen::inRange<std::size_t>(0, not_settled.size()));
      book.settle(*chosen);
      not_settled.erase(chosen);
    } else if (step == 2) {
      for (const UnackedTags::Ack& ack : book.flush()) {
        RC_ASSERT(at_server.contains(ack.tag));
        if (ack.multiple) {
          at_server.erase(at_server.begin(), at_server.upper_bound(ack.tag));
        } else {
          at_server.erase(ack.tag);
        }
      }
      RC_ASSERT(at_server == not_settled);
    }
  }
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
