#include "brokers/rabbitmq/amqp_url.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::brokers::rabbitmq {
namespace {

Settings parsed(std::string_view rest, bool tls = false) {
  Result<Settings> settings = parse_amqp_url(rest, tls);
  EXPECT_TRUE(settings) << rest << ": " << (settings ? "" : settings.error().message);
  return settings ? *settings : Settings{};
}

std::string refusal(std::string_view rest, bool tls = false) {
  const Result<Settings> settings = parse_amqp_url(rest, tls);
  EXPECT_FALSE(settings) << rest;
  if (settings) return "";
  EXPECT_EQ(settings.error().code, ErrorCode::kInvalidArgument);
  return settings.error().message;
}

TEST(AmqpUrl, NamesHostPortVirtualHostAndCredentials) {
  const Settings settings = parsed("//shop:p%40ss%3Aword@rabbit.example:5673/orders");
  EXPECT_EQ(settings.hosts, (std::vector<Host>{{"rabbit.example", 5673}}));
  EXPECT_EQ(settings.user, "shop");
  EXPECT_EQ(settings.password, "p@ss:word");
  EXPECT_EQ(settings.vhost, "orders");
  EXPECT_FALSE(settings.tls.enabled);
}

TEST(AmqpUrl, LeavesTheUsualValuesWhereNothingIsSaid) {
  const Settings settings = parsed("//localhost");
  EXPECT_EQ(settings.hosts, (std::vector<Host>{{"localhost", 5672}}));
  EXPECT_EQ(settings.user, "guest");
  EXPECT_EQ(settings.vhost, "/");
  EXPECT_EQ(settings.prefix, "bide");
  EXPECT_EQ(settings.queue_type, QueueType::kQuorum);
  EXPECT_EQ(parsed("//localhost/").vhost, "/");
  EXPECT_EQ(parsed("//localhost//").vhost, "/");
  EXPECT_EQ(parsed("//localhost/%2F").vhost, "/");
  EXPECT_EQ(parsed("//host", true).hosts.front().port, 5671);
}

TEST(AmqpUrl, NamesTheNodesOfACluster) {
  const Settings settings = parsed("//u@a,b:1,[::1]:2/v");
  EXPECT_EQ(settings.hosts, (std::vector<Host>{{"a", 5672}, {"b", 1}, {"::1", 2}}));
  EXPECT_EQ(place_of(settings), "a:5672, b:1, ::1:2, virtual host v");
}

TEST(AmqpUrl, UnderstandsItsOptions) {
  const Settings settings = parsed(
      "//h/v?prefix=shop&queue_type=classic&radix=4&precision=3&worker_wait=16ms&max_length=500&delivery_limit=7"
      "&window=64&heartbeat=5s&patience=2s&consumer_timeout=1h&dead_retention=30d&declare=no&cancel=no&cancel_memory=60d");
  EXPECT_EQ(settings.prefix, "shop");
  EXPECT_EQ(settings.queue_type, QueueType::kClassic);
  EXPECT_EQ(settings.delay, (DelayShape{.radix = 4, .digits = 3, .worker_wait = Milliseconds(16)}));
  EXPECT_EQ(settings.max_length, 500u);
  EXPECT_EQ(settings.delivery_limit, 7u);
  EXPECT_EQ(settings.window, 64u);
  EXPECT_EQ(settings.heartbeat, Milliseconds(5000));
  EXPECT_EQ(settings.patience, Milliseconds(2000));
  EXPECT_EQ(settings.consumer_timeout, Milliseconds(3'600'000));
  EXPECT_EQ(settings.dead_retention, std::chrono::hours(24 * 30));
  EXPECT_FALSE(settings.declare);
  EXPECT_FALSE(settings.notices);
  EXPECT_EQ(settings.notice_retention, std::chrono::hours(24 * 60));
  EXPECT_EQ(parsed("//h?precision=16ms").delay.unit, Milliseconds(16));
  const Settings secure = parsed("//h?ca=/a%20b.pem&cert=c&key=k&verify=no", true);
  EXPECT_EQ(secure.tls.ca, "/a b.pem");
  EXPECT_EQ(secure.tls.certificate, "c");
  EXPECT_EQ(secure.tls.key, "k");
  EXPECT_FALSE(secure.tls.verify);
}

TEST(AmqpUrl, UnknownOptionIsAnsweredWithTheNearestOne) {
  EXPECT_NE(refusal("//h?prefx=a").find("unknown option 'prefx'"), std::string::npos);
  EXPECT_NE(refusal("//h?prefx=a").find("did you mean 'prefix'?"), std::string::npos);
}

TEST(AmqpUrl, MistakesAreNamedWithWhatIsAllowed) {
  EXPECT_NE(refusal("h").find("//"), std::string::npos);
  EXPECT_NE(refusal("//").find("names no host"), std::string::npos);
  EXPECT_NE(refusal("//a,,b").find("names no host"), std::string::npos);
  EXPECT_NE(refusal("//h:").find("colon without a port"), std::string::npos);
  EXPECT_NE(refusal("//h:99999").find("1 to 65535"), std::string::npos);
  EXPECT_NE(refusal("//h/a/b").find("%2F"), std::string::npos);
  EXPECT_NE(refusal("//h?radix=10").find("radix: invalid radix '10'; allowed is 4, 16, 64 or 256"), std::string::npos);
  EXPECT_NE(refusal("//h?queue_type=lazy").find("quorum or classic"), std::string::npos);
  EXPECT_NE(refusal("//h?window=0").find("window: "), std::string::npos);
  EXPECT_NE(refusal("//h?heartbeat=1ms").find("heartbeat: "), std::string::npos);
  EXPECT_NE(refusal("//h?precision=2d").find("precision: "), std::string::npos);
  EXPECT_NE(refusal("//h?prefix=a%20b").find("prefix: "), std::string::npos);
  EXPECT_NE(refusal("//h?ca=x").find("only with amqps"), std::string::npos);
  EXPECT_NE(refusal("//h?namespace=x").find("compat="), std::string::npos);
}

TEST(AmqpUrl, PasswordIsNeverRepeated) {
  for (const char* url : {"//user:secret@:5672/", "//user:secret@h:0", "//user:secret/with@h:1/x", "//user:secr%zzet@h",
                          "//user:secret@h?nonsense=1", "//user:se/secret@h:secret"}) {
    EXPECT_EQ(refusal(url).find("secret"), std::string::npos) << url;
  }
  EXPECT_EQ(place_of(parsed("//user:secret@h")).find("secret"), std::string::npos);
}

}  // namespace
}  // namespace bide::brokers::rabbitmq
