// The signature, verified by somebody who shares no code with us: the receiver of examples/, in Python.

#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "callbacks/callback_bench.h"
#include "support/child_process.h"

namespace bide::server {
namespace {

constexpr std::string_view kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr std::string_view kNewSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

class Signature : public CallbackTest {
 protected:
  void TearDown() override {
    if (receiver_ > 0) {
      kill(receiver_, SIGKILL);
      waitpid(receiver_, nullptr, 0);
    }
    CallbackTest::TearDown();
  }

  std::string output() const {
    std::ifstream file(folder_.path() + "/receiver");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  void start_receiver(std::string_view secrets) {
    support::Program program{.arguments = {BIDE_PYTHON, "-B", BIDE_EXAMPLES "/callback_receiver.py", "--port", "0"},
                             .environment = {"BIDE_WEBHOOK_SECRET=" + std::string(secrets), "PYTHONUNBUFFERED=1"},
                             .output = folder_.path() + "/receiver"};
    receiver_ = support::spawn(program);
    std::string said;
    while (!said.ends_with("/\n")) {
      ASSERT_EQ(waitpid(receiver_, nullptr, WNOHANG), 0) << output();
      std::this_thread::sleep_for(10ms);
      said = output();
    }
    url_ = said.substr(said.find("http://"), said.size() - 1 - said.find("http://"));
  }

  JobInfo deliver_signed(std::vector<std::string> secrets, std::string body) {
    CallbackOptions chosen = options();
    chosen.secrets = std::move(secrets);
    start(chosen);
    Job job = job_to(url_, std::move(body));
    job.retry = RetryPolicy::none();
    return deliver(job);
  }

  pid_t receiver_ = 0;
  std::string url_;
};

TEST_F(Signature, IsWhatIndependentCodeExpects) {
  start_receiver(kSecret);
  const JobInfo info = deliver_signed({std::string(kSecret)}, R"({"name": "Ann"})");
  EXPECT_EQ(info.state, JobState::kDone) << (info.history.empty() ? "" : info.history.back().text);
  EXPECT_EQ(info.result, R"({"bytes": 15})");
  EXPECT_NE(output().find("greet " + info.job.id.to_string() + " attempt 1: {\"name\": \"Ann\"}"), std::string::npos);
}

TEST_F(Signature, OfEveryByteThereIs) {
  start_receiver(kSecret);
  std::string body;
  for (int i = 0; i < 70'000; ++i) body += static_cast<char>(i % 128);
  EXPECT_EQ(deliver_signed({std::string(kSecret)}, body).result, R"({"bytes": 70000})");
}

TEST_F(Signature, IsMadeWithTheOldAndTheNewSecretWhileOneIsReplaced) {
  start_receiver(kNewSecret);
  EXPECT_EQ(deliver_signed({std::string(kSecret), std::string(kNewSecret)}, "x").state, JobState::kDone);
}

TEST_F(Signature, WithAnotherSecretIsRefused) {
  start_receiver(kNewSecret);
  const JobInfo info = deliver_signed({std::string(kSecret)}, "x");
  EXPECT_EQ(info.state, JobState::kDead);
  EXPECT_NE(info.history.back().text.find("401"), std::string::npos) << info.history.back().text;
}

TEST_F(Signature, IsMissingWithoutASecret) {
  start_receiver(kSecret);
  EXPECT_EQ(deliver_signed({}, "x").state, JobState::kDead);
}

}  // namespace
}  // namespace bide::server
