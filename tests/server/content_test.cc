// What is stored is what was sent. Many connections, plain and with TLS, send recognisable jobs at the same time in every
// framing, and read each of them back.
//
//   BIDE_CONTENT_CONNECTIONS=64 BIDE_CONTENT_MEGABYTES=200 server_content_test
//
// sends 200 MB in each framing on each of 64 connections without TLS, and on 64 with it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/api/api.h"
#include "server/api/api_test_bench.h"
#include "server/certificate.h"
#include "server/http/content_coding.h"
#include "server/http/http_server.h"
#include "server/raw_client.h"
#include "support/embedded_store.h"
#include "support/temporary_directory.h"

namespace bide::server_tests {
namespace {

using namespace bide::server;

enum class Framing { kLength, kChunked, kGzip, kChunkedGzip };
enum class Content { kOneLargeJob, kArray, kObject, kLines, kPipelined };

struct Form {
  std::string_view name;
  Framing framing;
  Content content;
  std::size_t times = 1;  // As many bytes as the others send.
};

constexpr std::array kForms = {
    Form{"one large job", Framing::kLength, Content::kOneLargeJob},
    Form{"batch with a length", Framing::kLength, Content::kArray},
    Form{"lines with a length", Framing::kLength, Content::kLines, 4},
    Form{"batch in chunks", Framing::kChunked, Content::kObject},
    Form{"lines in chunks", Framing::kChunked, Content::kLines},
    Form{"lines in gzip", Framing::kGzip, Content::kLines},
    Form{"batch in chunks of gzip", Framing::kChunkedGzip, Content::kArray},
    Form{"pipelined jobs", Framing::kLength, Content::kPipelined},
    Form{"pipelined jobs in chunks", Framing::kChunked, Content::kPipelined},
    Form{"pipelined jobs in gzip", Framing::kGzip, Content::kPipelined},
};

// Large enough that a session has to give others their turn in the middle of it.
constexpr std::size_t kRequestBytes = 24'000'000;
constexpr std::size_t kLargeJobBytes = 12'000'000;
constexpr std::size_t kMostPipelined = 32;

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

struct SentJob {
  std::string id;
  std::string body;
};

// The jobs of one connection; no two of them are alike.
class Source {
 public:
  explicit Source(std::uint32_t connection) : connection_(connection), state_(connection * 2 + 1) {}

  SentJob next(std::size_t bytes) {
    ++number_;
    char id[40];
    std::snprintf(id, sizeof id, "%08x-0000-4000-8000-%012llx", connection_, static_cast<unsigned long long>(number_));
    SentJob job{.id = id, .body = {}};
    job.body.reserve(bytes + 40);
    while (job.body.size() < bytes) {
      char word[40];
      const int size = std::snprintf(word, sizeof word, "c%u.j%llu.%llx ", connection_, static_cast<unsigned long long>(number_),
                                     static_cast<unsigned long long>(random()));
      job.body.append(word, static_cast<std::size_t>(size));
    }
    return job;
  }
  std::size_t random(std::size_t least, std::size_t most) { return least + random() % (most - least + 1); }

 private:
  std::uint64_t random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }

  const std::uint32_t connection_;
  std::uint64_t state_;
  std::uint64_t number_ = 0;
};

std::string json_of(const SentJob& job) { return R"({"kind":"a","id":")" + job.id + R"(","body_text":")" + job.body + "\"}"; }

std::string chunks_of(std::string_view bytes, Source& source) {
  std::string out;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, source.random(1, 100'000));
    bytes.remove_prefix(part.size());
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", part.size());
    out += size;
    out.append(part).append("\r\n");
  }
  return out + "0\r\n\r\n";
}

std::string request_of(std::string body, Framing framing, std::string_view type, Source& source) {
  std::string fields = "Content-Type: " + std::string(type) + "\r\n";
  if (framing == Framing::kGzip || framing == Framing::kChunkedGzip) {
    body = gzip(body);
    fields += "Content-Encoding: gzip\r\n";
  }
  if (framing == Framing::kLength || framing == Framing::kGzip) return post("/v1/jobs", body, fields);
  return "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" + fields + "\r\n" +
         chunks_of(body, source);
}

// One connection and everything that it sent.
class Sender {
 public:
  Sender(RawClient client, std::uint32_t number) : client_(std::move(client)), source_(number) {
    client_.set_patience(std::chrono::minutes(5));
  }

  void send(const Form& form, std::size_t bytes) {
    form_ = form.name;
    for (std::size_t sent = 0; sent < bytes;) {
      std::vector<SentJob> jobs;
      std::size_t size = 0;
      const std::size_t most = std::min(bytes - sent, form.content == Content::kOneLargeJob ? kLargeJobBytes : kRequestBytes);
      while (size < most && (form.content != Content::kPipelined || jobs.size() < kMostPipelined)) {
        jobs.push_back(source_.next(form.content == Content::kOneLargeJob ? most : source_.random(100, 40'000)));
        size += jobs.back().body.size();
      }
      sent += size;
      if (form.content == Content::kPipelined) {
        send_pipelined(jobs, form.framing);
      } else {
        send_together(jobs, form);
      }
      read_back(jobs);
      cancel(jobs);
    }
  }

 private:
  // As a client does that was told to come again, after as long as it was told.
  RawAnswer ask_until_taken(const std::string& request) {
    for (;;) {
      client_.send(request);
      RawAnswer answer = client_.receive();
      if (!is_told_to_come_again(answer)) return answer;
      wait_as_told(answer);
    }
  }

  // Of requests that were sent one behind the other; some of them were not taken, and are sent again one by one.
  std::vector<RawAnswer> ask_pipelined(const std::vector<std::string>& requests) {
    std::string all;
    for (const std::string& request : requests) all += request;
    client_.send(all);
    std::vector<RawAnswer> answers;
    for (std::size_t i = 0; i < requests.size(); ++i) answers.push_back(client_.receive());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!is_told_to_come_again(answers[i])) continue;
      wait_as_told(answers[i]);
      answers[i] = ask_until_taken(requests[i]);
    }
    return answers;
  }

  static bool is_told_to_come_again(const RawAnswer& answer) { return answer.status == 429 || answer.status == 503; }

  static void wait_as_told(const RawAnswer& answer) {
    const auto told = answer.fields.find("retry-after");
    ASSERT_NE(told, answer.fields.end()) << answer.body.substr(0, 300);
    std::this_thread::sleep_for(std::chrono::seconds(std::strtol(told->second.c_str(), nullptr, 10)));
  }

  void expect_status(const RawAnswer& answer, int status) {
    ASSERT_EQ(answer.status, status) << form_ << ": " << answer.body.substr(0, 300);
  }

  void send_pipelined(const std::vector<SentJob>& jobs, Framing framing) {
    std::vector<std::string> requests;
    for (const SentJob& job : jobs) requests.push_back(request_of(json_of(job), framing, "application/json", source_));
    const std::vector<RawAnswer> answers = ask_pipelined(requests);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      expect_status(answers[i], 201);
      EXPECT_EQ(field_of(answers[i].body, "id"), jobs[i].id) << form_;
    }
  }

  void send_together(const std::vector<SentJob>& jobs, const Form& form) {
    const bool lines = form.content == Content::kLines;
    const bool many = form.content != Content::kOneLargeJob;
    std::string body = form.content == Content::kObject ? R"({"jobs":[)" : many && !lines ? "[" : "";
    for (const SentJob& job : jobs) {
      if (!lines && &job != &jobs.front()) body += ',';
      body += json_of(job);
      if (lines) body += '\n';
    }
    if (many && !lines) body += form.content == Content::kObject ? "]}" : "]";
    const RawAnswer answer = ask_until_taken(
        request_of(std::move(body), form.framing, lines ? "application/x-ndjson" : "application/json", source_));
    expect_status(answer, many ? 200 : 201);
    for (const SentJob& job : jobs) {
      ASSERT_NE(answer.body.find(R"("id":")" + job.id + R"(","existed":false)"), std::string::npos) << form_ << " " << job.id;
    }
  }

  void read_back(const std::vector<SentJob>& jobs) {
    for (std::size_t at = 0; at < jobs.size(); at += kMostPipelined) {
      const std::size_t end = std::min(at + kMostPipelined, jobs.size());
      std::vector<std::string> requests;
      for (std::size_t i = at; i < end; ++i) requests.push_back(get("/v1/jobs/" + jobs[i].id));
      const std::vector<RawAnswer> answers = ask_pipelined(requests);
      for (std::size_t i = at; i < end; ++i) {
        const RawAnswer& answer = answers[i - at];
        expect_status(answer, 200);
        // Not EXPECT_EQ: it would print both.
        const std::string stored = field_of(answer.body, "body_text");
        ASSERT_EQ(field_of(answer.body, "id"), jobs[i].id) << form_;
        ASSERT_TRUE(stored == jobs[i].body) << form_ << ": job " << jobs[i].id << " differs from byte " << first_difference(stored, jobs[i].body);
      }
    }
  }

  // So that a long run does not fill the disk.
  void cancel(const std::vector<SentJob>& jobs) {
    std::string body = R"({"ids":[)";
    for (const SentJob& job : jobs) body += (&job == &jobs.front() ? "\"" : ",\"") + job.id + "\"";
    expect_status(ask_until_taken(post("/v1/jobs/cancel", body + "]}", "Content-Type: application/json\r\n")), 200);
  }

  static std::string first_difference(std::string_view stored, std::string_view sent) {
    const std::size_t at = static_cast<std::size_t>(
        std::mismatch(stored.begin(), stored.end(), sent.begin(), sent.end()).first - stored.begin());
    return std::to_string(at) + ": '" + std::string(stored.substr(at, 60)) + "' instead of '" + std::string(sent.substr(at, 60)) + "'";
  }

  RawClient client_;
  Source source_;
  std::string_view form_;
};

TEST(StoredContent, IsWhatWasSentOnEveryConnectionInEveryFraming) {
  const std::size_t connections = from_environment("BIDE_CONTENT_CONNECTIONS", 4);
  const std::size_t bytes = from_environment("BIDE_CONTENT_MEGABYTES", 5) * 1'000'000;
  const support::TemporaryDirectory folder;
  write_certificate(folder.path() + "/certificate.pem", folder.path() + "/key.pem", "content");
  support::EmbeddedStore store(folder.path() + "/data");
  Api api({.broker = std::shared_ptr<Broker>(std::shared_ptr<void>(), &store.broker()), .inspector = &store.inspector(), .version = "1.2.3"});
  const auto start = [&](bool tls) {
    HttpOptions options;
    options.listen = {{.host = "127.0.0.1"}};
    if (tls) options.certificate_file = folder.path() + "/certificate.pem";
    if (tls) options.key_file = folder.path() + "/key.pem";
    options.service.routes = api.routes();
    options.service.limits.held_bytes = std::uint64_t{16} << 30;  // Nobody is told to come again.
    options.service.limits.transfer_timeout = std::chrono::hours(1);
    return std::move(HttpServer::start(std::move(options)).value());
  };
  const auto plain = start(false);
  const auto with_tls = start(true);

  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2 * connections; ++i) {
    threads.emplace_back([&, i] {
      try {
        Sender sender(i % 2 == 0 ? RawClient(plain->addresses().front().port)
                                 : RawClient::with_tls(with_tls->addresses().front().port),
                      static_cast<std::uint32_t>(i + 1));
        // Not all in the same order: large bodies of one meet small ones of another.
        for (std::size_t form = 0; form < kForms.size() && !testing::Test::HasFatalFailure(); ++form) {
          const Form& next = kForms[(form + i / 2) % kForms.size()];
          sender.send(next, bytes * next.times);
        }
      } catch (const std::exception& thrown) {
        ADD_FAILURE() << "connection " << i + 1 << ": " << thrown.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  api.stop();
}

}  // namespace
}  // namespace bide::server_tests
