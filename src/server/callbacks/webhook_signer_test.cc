#include "server/callbacks/webhook_signer.h"

#include <gtest/gtest.h>

#include <string>

namespace bide::server {
namespace {

// The figures were made with Python: base64.b64encode(hmac.digest(base64.b64decode(key), b"id.time.body", "sha256")).
const std::string kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const std::string kOther = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
constexpr std::string_view kId = "msg_p5jXN8AQM9LWM0D4loKWxJek";
constexpr std::int64_t kTime = 1614265330;
constexpr std::string_view kBody = R"({"test": 2432232314})";

TEST(WebhookSigner, SignsIdTimeAndBody) {
  const auto signer = WebhookSigner::make({kSecret});
  ASSERT_TRUE(signer);
  EXPECT_EQ(signer->sign("example.org", kId, kTime, kBody), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  EXPECT_NE(signer->sign("example.org", "another", kTime, kBody), signer->sign("example.org", kId, kTime, kBody));
  EXPECT_NE(signer->sign("example.org", kId, kTime + 1, kBody), signer->sign("example.org", kId, kTime, kBody));
}

TEST(WebhookSigner, EverySecretSigns) {
  const auto signer = WebhookSigner::make({kSecret, kOther});
  ASSERT_TRUE(signer);
  const std::string signature = signer->sign("example.org", kId, kTime, kBody);
  EXPECT_EQ(signature, WebhookSigner::make({kSecret})->sign("", kId, kTime, kBody) + " " +
                           WebhookSigner::make({kOther})->sign("", kId, kTime, kBody));
}

TEST(WebhookSigner, AHostHasSecretsOfItsOwn) {
  const auto signer = WebhookSigner::make({kSecret}, {{"own.example", {kOther}}, {"none.example", {}}});
  ASSERT_TRUE(signer);
  EXPECT_EQ(signer->sign("own.example", kId, kTime, kBody), WebhookSigner::make({kOther})->sign("", kId, kTime, kBody));
  EXPECT_EQ(signer->sign("none.example", kId, kTime, kBody), "");
}

TEST(WebhookSigner, WithoutASecretNothingIsSigned) {
  EXPECT_EQ(WebhookSigner().sign("example.org", kId, kTime, kBody), "");
}

TEST(WebhookSigner, ASecretThatIsNoneIsNamedByItsPlaceOnly) {
  for (const std::string bad : {"", "hunter2hunter2hunter2hunter2hunter2", "whsec_", "whsec_c2hvcnQ=", "whsec_***"}) {
    const auto signer = WebhookSigner::make({kSecret, bad});
    ASSERT_FALSE(signer);
    EXPECT_EQ(signer.error().message, "secret 2 of the callbacks is not whsec_ followed by base64 of 24 to 64 bytes");
  }
}

}  // namespace
}  // namespace bide::server
