// HttpFixture: a real HttpServer on a port of its own, with routes that do what a test needs.
//
//   GET  /hello             "hello", or with ?bytes=N so many bytes of text
//   POST /echo              the body
//   GET  /later             answered by the test: wait_for_reply()
//   GET  /stream            the same as a stream
//   GET  /throws            throws
//   GET  /forgets           destroys its reply
//   GET  /secret            scope admin, for those who show "Bearer good"
//   GET  /open              for everybody, who are strangers then
//   POST /open              the same with a body, answered by the test

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
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
    options.service.admit = [has_token = callers_have_tokens_](const Request& request,
                                                               Scope scope) -> std::variant<Identity, wire::Problem> {
      if (scope == Scope::kNone) return Identity{};
      if (scope != Scope::kAdmin) return Identity{.name = "local", .scopes = 0xff, .has_token = has_token};
      if (request.field("authorization") == "Bearer good") return Identity{.name = "admin", .scopes = 0xff};
      return wire::Problem{.status = 401, .code = "unauthorized", .detail = "a token is needed"};
    };
    options.service.on_served = [this](const Served& served) {
      const std::lock_guard lock(mutex_);
      statuses_.push_back(served.status);
      changed_.notify_all();
    };
    options.service.on_problem = [this](std::string_view text) {
      const std::lock_guard lock(mutex_);
      problems_.emplace_back(text);
      changed_.notify_all();
    };
    server_ = std::move(HttpServer::start(std::move(options)).value());
    port_ = server_->addresses().front().port;
  }
  // What the server answers. A connection that it closed without a word is tried again: with the short deadlines of
  // some tests, one that was made on a busy machine can be over before its first byte is sent.
  RawAnswer ask(std::string_view request) {
    for (;;) {
      RawAnswer answer = RawClient(port_).ask(request);
      if (answer.status != 0) return answer;
    }
  }
  // A server that answers is one that survived.
  void expect_alive() { EXPECT_EQ(ask(get("/hello")).body, "hello"); }

  Held wait_for_reply() {
    std::optional<Held> held = wait_for_reply(std::chrono::seconds(20));
    if (!held) throw std::runtime_error("the route was not asked");
    return std::move(*held);
  }
  // Nothing: the route was not asked in that time.
  std::optional<Held> wait_for_reply(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !held_.empty(); })) return std::nullopt;
    Held held = std::move(held_.front());
    held_.pop_front();
    return held;
  }

  // A request whose client went away before it was answered, and whose route has been told.
  Held abandoned(bool slams) {
    RawClient client(port_);
    client.send(get("/later"));
    Held held = wait_for_reply();
    std::promise<void> gone;
    held.reply.on_gone([&] { gone.set_value(); });
    if (slams) {
      client.slam();
    } else {
      client.close();
    }
    gone.get_future().wait();
    return held;
  }

  // Waits for the end of so many requests; the status of each.
  std::vector<int> wait_for_served(std::size_t count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return statuses_.size() >= count; })) {
      throw std::runtime_error("not so many requests were served");
    }
    return statuses_;
  }
  // Waits until the server says something that holds this.
  std::string wait_for_problem(std::string_view text) {
    std::unique_lock lock(mutex_);
    std::string found;
    const bool said = changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      for (const std::string& problem : problems_) {
        if (problem.find(text) != std::string::npos) found = problem;
      }
      return !found.empty();
    });
    if (!said) throw std::runtime_error("the server did not say: " + std::string(text));
    return found;
  }
  std::vector<std::string> problems() {
    const std::lock_guard lock(mutex_);
    return problems_;
  }

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
        {.method = Method::kPost, .pattern = "/open", .scope = Scope::kNone, .answer = hold},
        {.method = Method::kPost, .pattern = "/small", .scope = Scope::kWrite, .answer = hello, .body_bytes = 1000},
        {.method = Method::kGet, .pattern = "/v1/jobs/{id}", .answer = hello},
    };
  }

  std::mutex mutex_;  // Guards everything below.
  std::condition_variable changed_;
  std::deque<Held> held_;
  std::vector<std::string> problems_;
  std::vector<int> statuses_;

 protected:
  bool callers_have_tokens_ = false;  // Before start().
  std::uint16_t port_ = 0;
  std::unique_ptr<HttpServer> server_;  // Last: its threads use all of the above.
};

}  // namespace bide::server_tests
