// Calls of a client with the completion tokens of Asio. Header only, and not part of bide.h: include it where Asio is
// there, Boost's, or with BIDE_ASIO_STANDALONE defined the one that stands alone.
//
//   #include <bide/asio.h>
//
//   boost::asio::awaitable<void> upload(bide::Client client, std::string png) {
//     const bide::EnqueueOptions options{.queue = "images"};
//     const bide::Result<bide::JobId> id = co_await bide::async_enqueue(client, "resize", png, options,
//     boost::asio::use_awaitable);
//   }
//
// The completion runs on the handler's associated executor, which has work until then, and gets the Result. Calls under
// way cannot be cancelled: requests end by their timeout.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#ifdef BIDE_ASIO_STANDALONE
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#else
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#endif

#include "bide/client.h"
#include "bide/enqueue_options.h"
#include "bide/request.h"
#include "bide/result.h"

namespace bide {

namespace completion_token {

#ifdef BIDE_ASIO_STANDALONE
namespace net = ::asio;
#else
namespace net = ::boost::asio;
#endif

// A handler can be called once and moved only; a completion can be copied.
template <class T, class Handler>
Completion<T> completion_of(Handler handler) {
  using Work = net::executor_work_guard<net::associated_executor_t<Handler>>;
  struct Waiting {
    explicit Waiting(Handler of) : work(net::get_associated_executor(of)), handler(std::move(of)) {}
    Work work;
    Handler handler;
  };
  const auto waiting = std::make_shared<Waiting>(std::move(handler));
  return [waiting](Result<T> result) {
    net::post(waiting->work.get_executor(), [waiting, result = std::move(result)]() mutable {
      Handler called = std::move(waiting->handler);
      waiting->work.reset();
      std::move(called)(std::move(result));
    });
  };
}

}  // namespace completion_token

// As Client::enqueue.
template <class Token>
auto async_enqueue(Client client, std::string_view kind, std::string_view body, const EnqueueOptions& options,
                   Token&& token) {
  return completion_token::net::async_initiate<Token, void(Result<JobId>)>(
      [](auto handler, Client to, const std::string& of_kind, const std::string& of_body, const EnqueueOptions& with) {
        to.enqueue_async(of_kind, of_body, with, completion_token::completion_of<JobId>(std::move(handler)));
      },
      token, std::move(client), std::string(kind), std::string(body), options);
}

// As Client::request.
template <class T = Reply, class Token>
auto async_request(Client client, std::string_view kind, std::string_view body, const RequestOptions& options,
                   Token&& token) {
  return completion_token::net::async_initiate<Token, void(Result<T>)>(
      [](auto handler, Client to, const std::string& of_kind, const std::string& of_body, const RequestOptions& with) {
        to.request_async<T>(of_kind, of_body, with, completion_token::completion_of<T>(std::move(handler)));
      },
      token, std::move(client), std::string(kind), std::string(body), options);
}

#ifdef BIDE_NO_AGGREGATES_IN_CO_AWAIT
// Give the options as a variable; see bide/coroutine.h.
template <class Token>
void async_enqueue(Client client, std::string_view kind, std::string_view body, EnqueueOptions&& options,
                   Token&& token) = delete;
template <class T = Reply, class Token>
void async_request(Client client, std::string_view kind, std::string_view body, RequestOptions&& options,
                   Token&& token) = delete;
#endif

}  // namespace bide
