#include "brokers/rabbitmq/compat/foreign_dialect.h"

#include <gtest/gtest.h>

namespace bide::brokers::rabbitmq::compat {
namespace {

TEST(ForeignDialect, LongestHeadersAreLeftOutOfWhatCannotBePublished) {
  AmqpMessage message;
  message.headers = {{"short", "kept"}, {"long", std::string(130 * 1024, 'x')}};
  fit_headers(message);
  EXPECT_EQ(message.headers, (FieldTable{{"short", "kept"}, {"bide-dropped-headers", "long"}}));
  AmqpMessage fits;
  fits.headers = {{"long", std::string(100 * 1024, 'x')}};
  const FieldTable before = fits.headers;
  fit_headers(fits);
  EXPECT_EQ(fits.headers, before);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq::compat
