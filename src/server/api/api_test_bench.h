// ApiBench: the routes over a real engine, asked by tests that are their own connections.

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bide/wait.h"
#include "server/api/api.h"
#include "server/http/router.h"
#include "support/embedded_store.h"
#include "support/temporary_directory.h"
#include "wire/json_reader.h"

namespace bide::server {

// A connection that waits for its one answer.
class Caller : public ReplyTarget, public std::enable_shared_from_this<Caller> {
 public:
  void send(Response response) override {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Receipt> receipt = std::exchange(response.receipt, nullptr);
    if (left_) return;  // And the answer with it.
    response_ = std::move(response);
    changed_.notify_all();
    lock.unlock();
    if (receipt) receipt->written();
  }
  std::shared_ptr<Stream> stream(Response head) override {
    class Kept : public Stream {
     public:
      explicit Kept(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}
      bool write(std::string bytes) override {
        std::lock_guard lock(caller_->mutex_);
        if (caller_->left_) return false;
        caller_->streamed_ += bytes;
        caller_->changed_.notify_all();
        return true;
      }

     private:
      const std::shared_ptr<Caller> caller_;  // The test may have ended without leaving.
    };
    send(std::move(head));
    return std::make_shared<Kept>(shared_from_this());
  }
  void on_gone(std::function<void()> gone) override {
    std::lock_guard lock(mutex_);
    gone_ = std::move(gone);
  }

  // The client closes its connection.
  void leave() {
    std::function<void()> gone;
    {
      std::lock_guard lock(mutex_);
      left_ = true;
      gone = std::move(gone_);
    }
    if (gone) gone();
  }
  // Its machine is switched off: nobody is told, and no answer arrives.
  void vanish() {
    std::lock_guard lock(mutex_);
    left_ = true;
  }
  bool answered() {
    std::lock_guard lock(mutex_);
    return response_.has_value();
  }
  Response wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return response_.has_value(); });
    return *response_;
  }
  // Waits until so much of a stream has come.
  std::string wait_for_text(const std::string& text) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return streamed_.find(text) != std::string::npos; });
    return streamed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Response> response_;
  std::string streamed_;
  std::function<void()> gone_;
  bool left_ = false;
};

// One field of an answer, as JSON text; strings without their quotes. Empty when it is not there.
inline std::string field_of(std::string_view json, std::string_view wanted) {
  wire::JsonReader in(json, wire::kDeepestAnswer);
  in.object();
  while (const auto name = in.field()) {
    const bool found = *name == wanted;
    if (found && in.type() == wire::JsonReader::Type::kString) return std::string(in.string());
    const std::string_view value = in.raw();
    if (found) return std::string(value);
  }
  return "";
}

// The elements of an array, or of a field that is one.
inline std::vector<std::string> items_of(std::string_view json) {
  std::vector<std::string> items;
  wire::JsonReader in(json, wire::kDeepestAnswer);
  in.array();
  while (in.element()) items.emplace_back(in.raw());
  return items;
}
inline std::vector<std::string> items_of(std::string_view json, std::string_view field) {
  return items_of(field_of(json, field));
}

class ApiBench : public testing::Test {
 protected:
  void SetUp() override { open({}); }
  void TearDown() override { close(); }

  void open(ApiOptions options, std::uint64_t max_jobs = 1'000'000, std::uint64_t done_limit = 100'000) {
    close();
    store_ = std::make_unique<support::EmbeddedStore>(folder_.path() + "/data", max_jobs, done_limit);
    options.broker = std::shared_ptr<Broker>(std::shared_ptr<void>(), &store_->broker());
    options.inspector = &store_->inspector();
    options.version = "1.2.3";
    api_ = std::make_unique<Api>(std::move(options));
    router_ = std::make_unique<Router>(api_->routes());
  }
  void close() {
    if (api_) api_->stop();
    router_ = nullptr;
    api_ = nullptr;
    store_ = nullptr;
  }

  using Fields = std::map<std::string, std::string>;
  std::shared_ptr<Caller> start(Method method, std::string path, std::string body = {}, Fields fields = {}) {
    Request request{.method = method, .path = path.substr(0, path.find('?'))};
    if (const std::size_t mark = path.find('?'); mark != std::string::npos) {
      std::string rest = path.substr(mark + 1);
      while (!rest.empty()) {
        const std::string pair = rest.substr(0, rest.find('&'));
        rest.erase(0, std::min(rest.size(), pair.size() + 1));
        const std::size_t equals = pair.find('=');
        request.query[pair.substr(0, equals)] = equals == std::string::npos ? "" : pair.substr(equals + 1);
      }
    }
    request.body = std::move(body);
    request.fields = std::move(fields);
    if (!request.body.empty()) request.fields.try_emplace("content-type", "application/json");
    request.caller = {.name = caller_name_, .scopes = caller_scopes_, .queues = caller_queues_};
    auto caller = std::make_shared<Caller>();
    const Router::Match match = router_->find(method, request.path);
    EXPECT_NE(match.route, nullptr) << path;
    request.captured = match.captured;
    match.route->answer(std::move(request), Reply(caller));
    return caller;
  }
  Response call(Method method, std::string path, std::string body = {}, Fields fields = {}) {
    return start(method, std::move(path), std::move(body), std::move(fields))->wait();
  }
  Response get(std::string path) { return call(Method::kGet, std::move(path)); }
  Response post(std::string path, std::string body, Fields fields = {}) {
    return call(Method::kPost, std::move(path), std::move(body), std::move(fields));
  }

  std::string enqueue(const std::string& body) {
    const Response response = post("/v1/jobs", body);
    EXPECT_EQ(response.status, 201) << response.body;
    return field_of(response.body, "id");
  }
  // The first lease of an answer, or of a new request.
  std::string lease_one(const std::string& body = R"({"wait":"5s"})") {
    const auto leases = items_of(post("/v1/leases", body).body, "leases");
    EXPECT_EQ(leases.size(), 1u);
    return leases.empty() ? "{}" : leases[0];
  }
  static std::string settlement(const std::string& lease, const std::string& rest) {
    return R"({"id":")" + field_of(lease, "id") + R"(","token":")" + field_of(lease, "token") + "\"," + rest + "}";
  }
  AuditReport audit() {
    return wait<AuditReport>([&](auto done) { store_->inspector().audit(std::move(done)); }).value();
  }
  void expect_problem(const Response& response, int status, const std::string& code, const std::string& says = "") {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(field_of(response.body, "code"), code) << response.body;
    EXPECT_EQ(response.content_type, "application/problem+json");
    EXPECT_EQ(field_of(response.body, "status"), std::to_string(status));
    EXPECT_NE(field_of(response.body, "detail").find(says), std::string::npos) << response.body;
  }

  support::TemporaryDirectory folder_;
  std::string caller_name_ = "local";
  std::uint8_t caller_scopes_ = 15;
  std::vector<std::string> caller_queues_;  // Not empty: restricted to them.
  std::unique_ptr<support::EmbeddedStore> store_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Router> router_;
};

}  // namespace bide::server
