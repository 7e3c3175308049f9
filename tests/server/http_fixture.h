// HttpFixture: a real HttpServer on a port of its own, with routes that do what a test needs.
//
//   GET  /hello             "hello", or with ?bytes=N so many bytes of text
//   POST /echo              the body
//   GET  /later             answered by the test: wait_for_reply()
//   GET  /stream            the same as a stream
//   GET  /throws            throws
//   GET  /forgets           destroys its reply
//   GET  /secret            scope admin, for those who show "Bearer good"
//   GET  /open              for everybody

#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http_server.h"
#include "server/raw_client.h"

namespace bide::server_tests {

using namespace bide::server;

class HttpFixture : public testing::Test {
 protected:
  struct Held {
    Request request;
    Reply reply;
  };

  void start(HttpOptions options = {}) {
    if (options.listen.empty()) options.listen = {{.host = "127.0.0.1"}};
    options.service.routes = routes();
    options.service.admit = [](const Request& request, Scope scope) -> std::variant<Identity, wire::Problem> {
      if (scope != Scope::kAdmin) return Identity{.name = "local", .scopes = 0xff};
      if (request.field("authorization") == "Bearer good") return Identity{.name = "admin", .scopes = 0xff};
      return wire::Problem{.status = 401, .code = "unauthorized", .detail = "a token is needed"};
    };
    options.service.on_problem = [this](std::string_view text) {
      const std::lock_guard lock(mutex_);
      problems_.emplace_back(text);
    };
    server_ = std::move(HttpServer::start(std::move(options)).value());
    port_ = server_->addresses().front().port;
  }
  // A server that answers is one that survived.
  void expect_alive() {
    RawClient client(port_);
    EXPECT_EQ(client.ask(get("/hello")).body, "hello");
  }

  Held wait_for_reply() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !held_.empty(); })) {
      throw std::runtime_error("the route was not asked");
    }
    Held held = std::move(held_.front());
    held_.pop_front();
    return held;
  }

  std::vector<std::string> problems() {
    const std::lock_guard lock(mutex_);
    return problems_;
  }

  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;

 private:
  Routes routes() {
    const auto hello = [](const Request& request, Reply reply) {
      const auto bytes = request.query.find("bytes");
      std::string body = "hello";
      if (bytes != request.query.end()) body = std::string(std::stoul(bytes->second), 'a');
      reply.send({.content_type = "text/plain", .body = std::move(body)});
    };
    const auto hold = [this](Request request, Reply reply) {
      const std::lock_guard lock(mutex_);
      held_.push_back({std::move(request), std::move(reply)});
      changed_.notify_all();
    };
    return {
        {.method = Method::kGet, .pattern = "/hello", .answer = hello},
        {.method = Method::kPost,
         .pattern = "/echo",
         .scope = Scope::kWrite,
         .answer =
             [](Request request, Reply reply) {
               reply.send({.content_type = "application/octet-stream", .body = std::move(request.body)});
             }},
        {.method = Method::kGet, .pattern = "/later", .answer = hold},
        {.method = Method::kGet, .pattern = "/throws", .answer = [](Request, Reply) { throw std::runtime_error("ouch"); }},
        {.method = Method::kGet, .pattern = "/forgets", .answer = [](Request, Reply) {}},
        {.method = Method::kGet, .pattern = "/secret", .scope = Scope::kAdmin, .answer = hello},
        {.method = Method::kPost, .pattern = "/secret", .scope = Scope::kAdmin, .answer = hello},
        {.method = Method::kGet, .pattern = "/open", .scope = Scope::kNone, .answer = hello},
        {.method = Method::kGet, .pattern = "/v1/jobs/{id}", .answer = hello},
    };
  }

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::deque<Held> held_;
  std::vector<std::string> problems_;
};

}  // namespace bide::server_tests
