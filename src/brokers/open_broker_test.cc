#include "brokers/open_broker.h"

#include <gtest/gtest.h>

#include <string>

#include "support/temporary_directory.h"

namespace bide::brokers {
namespace {

Error error_of(std::string_view url) {
  const auto opened = open_broker(url);
  EXPECT_FALSE(opened) << url;
  return opened ? Error{ErrorCode::kIoError, "opened"} : opened.error();
}

TEST(OpenBroker, OpensTheEngineInTheDirectoryOfTheUrl) {
  support::TemporaryDirectory directory;
  const auto opened = open_broker("bide:" + directory.path() + "/data?durability=os&result_retention=5m&max_jobs=10");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_NE(opened->broker, nullptr);
  EXPECT_NE(opened->inspector, nullptr);
}

TEST(OpenBroker, AnUnknownSchemeIsAnsweredWithTheKnownOnes) {
  const Error error = error_of("ampq://host/");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message,
            "unknown scheme 'ampq' in the broker's URL; known are bide, amqp, amqps, http, https, http+unix, redis, redis+sentinel, "
            "postgres, postgresql, mysql, mariadb; did you mean 'amqp'?");
  EXPECT_NE(error_of("bied:./data").message.find("did you mean 'bide'?"), std::string::npos);
}

TEST(OpenBroker, WithoutASchemeAnExampleIsGiven) {
  EXPECT_NE(error_of("./data").message.find("such as bide:./data"), std::string::npos);
}

TEST(OpenBroker, AServerThatIsNotThereIsNamedWithoutThePassword) {
  for (const char* const url : {"redis://user:secret@127.0.0.1:1/", "postgres://user:secret@127.0.0.1:1/jobs",
                                "mysql://user:secret@127.0.0.1:1/jobs"}) {
    const Error error = error_of(url);
    EXPECT_EQ(error.code, ErrorCode::kUnavailable) << url;
    EXPECT_NE(error.message.find("127.0.0.1"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("secret"), std::string::npos) << error.message;
  }
}

TEST(OpenBroker, MistakesInSettingsAreNamed) {
  EXPECT_NE(error_of("bide:").message.find("names no directory"), std::string::npos);
  EXPECT_NE(error_of("bide:x?durabilty=os").message.find("did you mean 'durability'?"), std::string::npos);
  EXPECT_EQ(error_of("bide:x?durability=maybe").message,
            "durability: invalid durability 'maybe'; allowed is fsync, os or none");
  EXPECT_NE(error_of("bide:x?max_jobs=many").message.find("max_jobs: invalid number 'many'"), std::string::npos);
  EXPECT_NE(error_of("bide:x?result_retention=5").message.find("result_retention: "), std::string::npos);
  EXPECT_NE(error_of("bide:x?max_jobs=1&max_jobs=2").message.find("twice"), std::string::npos);
  EXPECT_NE(error_of("bide:x%zz").message.find("%"), std::string::npos);
  EXPECT_NE(error_of("bide:x%00y").message.find("%00 is not allowed"), std::string::npos);
}

TEST(OpenBroker, AHostInTheUrlOfAStoreIsRefusedWithoutRepeatingThePassword) {
  const Error error = error_of("bide://user:secret@host/data");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message.find("secret"), std::string::npos);
}

TEST(OutboxUrl, IsTakenOutOfTheSettings) {
  const auto url = parse_outbox_url("amqp://ann:pw@host/v?prefix=a&outbox=./my%20box&patience=5s&outbox_jobs=7");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->target, "amqp://ann:pw@host/v?prefix=a&patience=5s");
  EXPECT_EQ(url->directory, "./my box");
  EXPECT_EQ(url->max_jobs, 7u);
  EXPECT_EQ(parse_outbox_url("http://host?outbox=x")->target, "http://host");
  EXPECT_FALSE(parse_outbox_url("http://host?outbox=x")->only_spilled);
  EXPECT_FALSE(parse_outbox_url("http://host?outbox=x&outbox_use=always")->only_spilled);
  EXPECT_TRUE(parse_outbox_url("http://host?outbox=x&outbox_use=spill")->only_spilled);
  EXPECT_EQ(parse_outbox_url("bide:./data?durability=os")->target, "bide:./data?durability=os");
  EXPECT_TRUE(parse_outbox_url("bide:./data?durability=os")->directory.empty());
  for (const char* wrong : {"http://host?outbox=", "http://host?outbox=x&outbox_jobs=0", "http://host?outbox=x&outbox_jobs=a",
                            "http://host?outbox=x&outbox_use=often",
                            "bide:./data?outbox=x"}) {
    const auto refused = parse_outbox_url(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace bide::brokers
