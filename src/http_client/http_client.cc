#include "http_client/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http_client/transfer.h"

namespace bide::http_client {

namespace {

using Clock = Transfer::Clock;

struct CloseMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

CURLM* open_multi() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(ready);
  return curl_multi_init();
}

HttpClientOptions completed(HttpClientOptions options) {
  if (options.user_agent.empty()) options.user_agent = "bide/" BIDE_VERSION;
  options.max_per_host = std::max(options.max_per_host, 1);
  return options;
}

}  // namespace

class HttpClient::Loop {
 public:
  explicit Loop(HttpClientOptions options) : options_(completed(std::move(options))), multi_(open_multi()) {
    curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(std::max(options_.max_idle, 1)));
    thread_ = std::thread([this] { run(); });
  }

  ~Loop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    curl_multi_wakeup(multi_.get());
    thread_.join();
    free_.clear();
  }

  Ticket send(HttpRequest request, HttpDone done) {
    const auto since = Clock::now();
    std::lock_guard lock(mutex_);
    const Ticket ticket = ++last_ticket_;
    arrived_.push_back(std::make_unique<Transfer>(ticket, std::move(request), std::move(done), since));
    wake();
    return ticket;
  }

  void cancel(Ticket ticket) {
    std::lock_guard lock(mutex_);
    cancelled_.push_back(ticket);
    wake();
  }

 private:
  struct Host {
    int under_way = 0;
    std::deque<Ticket> waiting;
  };
  using Transfers = std::unordered_map<Ticket, std::unique_ptr<Transfer>>;

  void wake() {
    if (!std::exchange(awake_, true)) curl_multi_wakeup(multi_.get());
  }

  void run() {
    while (take_arrived()) {
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      const bool completed_any = take_finished();
      expire_waiting();
      // A completion may have sent something; it is looked at first.
      if (!completed_any && may_sleep()) curl_multi_poll(multi_.get(), nullptr, 0, longest_sleep_ms(), nullptr);
    }
    end();
  }

  // False: it is the end.
  bool take_arrived() {
    std::vector<std::unique_ptr<Transfer>> arrived;
    std::vector<Ticket> cancelled;
    {
      std::lock_guard lock(mutex_);
      awake_ = true;
      arrived.swap(arrived_);
      cancelled.swap(cancelled_);
      if (stopping_) {
        for (auto& transfer : arrived) all_.emplace(transfer->ticket(), std::move(transfer));
        return false;
      }
    }
    for (auto& transfer : arrived) admit(std::move(transfer));
    for (const Ticket ticket : cancelled) {
      if (const auto found = all_.find(ticket); found != all_.end())
        abandon(found, HttpFailure::kCancelled, "cancelled");
    }
    return true;
  }

  bool may_sleep() {
    std::lock_guard lock(mutex_);
    if (stopping_ || !arrived_.empty() || !cancelled_.empty()) return false;
    awake_ = false;
    return true;
  }

  int longest_sleep_ms() const {
    constexpr int kLongest = 60'000;  // The library knows of its own deadlines.
    if (deadlines_.empty()) return kLongest;
    const auto left = std::chrono::ceil<Milliseconds>(deadlines_.begin()->first - Clock::now()).count();
    return static_cast<int>(std::clamp<Milliseconds::rep>(left, 0, kLongest));
  }

  void admit(std::unique_ptr<Transfer> transfer) {
    if (!transfer->check_request()) return transfer->complete();
    Host& host = hosts_[transfer->destination().key];
    const Ticket ticket = transfer->ticket();
    Transfer& admitted = *all_.emplace(ticket, std::move(transfer)).first->second;
    if (host.under_way < options_.max_per_host) return start(admitted, host);
    host.waiting.push_back(ticket);
    deadlines_.emplace(admitted.deadline(), ticket);
  }

  void start(Transfer& transfer, Host& host) {
    EasyHandle easy;
    if (free_.empty()) {
      easy.reset(curl_easy_init());
    } else {
      easy = std::move(free_.back());
      free_.pop_back();
    }
    transfer.prepare(std::move(easy), options_, places_);
    host.under_way += 1;
    curl_multi_add_handle(multi_.get(), transfer.easy());
  }

  bool take_finished() {
    bool any = false;
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      void* which = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &which);
      Transfer& transfer = *static_cast<Transfer*>(which);
      transfer.finish(message->data.result);
      remove(all_.find(transfer.ticket()));
      any = true;
    }
    return any;
  }

  void expire_waiting() {
    const auto now = Clock::now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      abandon(all_.find(deadlines_.begin()->second), HttpFailure::kTimedOut,
              "too many requests to this host are under way; it was not this one's turn in time");
    }
  }

  void abandon(Transfers::iterator at, HttpFailure failure, std::string why) {
    // What is known is asked for first: whether it was sent decides what may be done about it.
    if (at->second->is_under_way()) at->second->finish(CURLE_ABORTED_BY_CALLBACK);
    at->second->fail(failure, std::move(why));
    remove(at);
  }

  // Takes it out of everything, gives its place to the next, and calls back.
  void remove(Transfers::iterator at) {
    const std::unique_ptr<Transfer> transfer = std::move(at->second);
    all_.erase(at);
    const auto found = hosts_.find(transfer->destination().key);
    Host& host = found->second;
    if (transfer->is_under_way()) {
      EasyHandle easy = transfer->take_handle();
      curl_multi_remove_handle(multi_.get(), easy.get());
      curl_easy_reset(easy.get());
      if (free_.size() < kFreeHandles) free_.push_back(std::move(easy));
      host.under_way -= 1;
    } else {
      deadlines_.erase({transfer->deadline(), transfer->ticket()});
      std::erase(host.waiting, transfer->ticket());
    }
    if (host.under_way < options_.max_per_host && !host.waiting.empty()) {
      Transfer& next = *all_.at(host.waiting.front());
      host.waiting.pop_front();
      deadlines_.erase({next.deadline(), next.ticket()});
      start(next, host);
    } else if (host.under_way == 0) {
      hosts_.erase(found);
    }
    transfer->complete();
  }

  void end() {
    for (;;) {
      while (!all_.empty()) {
        const auto node = all_.extract(all_.begin());
        Transfer& transfer = *node.mapped();
        if (transfer.is_under_way()) {
          transfer.finish(CURLE_ABORTED_BY_CALLBACK);
          const EasyHandle easy = transfer.take_handle();
          curl_multi_remove_handle(multi_.get(), easy.get());
        }
        transfer.fail(HttpFailure::kCancelled, "the client is being closed");
        transfer.complete();
      }
      take_arrived();
      if (all_.empty()) return;
    }
  }

  static constexpr std::size_t kFreeHandles = 64;

  const HttpClientOptions options_;
  const std::unique_ptr<CURLM, CloseMulti> multi_;

  // Of the client's thread.
  Transfers all_;
  std::map<std::string, Host> hosts_;
  std::set<std::pair<Clock::time_point, Ticket>> deadlines_;  // Of those that wait for their turn.
  AddressPlaces places_;
  std::vector<EasyHandle> free_;

  std::mutex mutex_;  // Guards everything below.
  bool stopping_ = false;
  bool awake_ = true;  // Looks at what arrived before it sleeps.
  Ticket last_ticket_ = 0;
  std::vector<std::unique_ptr<Transfer>> arrived_;
  std::vector<Ticket> cancelled_;

  std::thread thread_;
};

HttpClient::HttpClient(HttpClientOptions options) : loop_(std::make_unique<Loop>(std::move(options))) {}
HttpClient::~HttpClient() = default;
HttpClient::Ticket HttpClient::send(HttpRequest request, HttpDone done) {
  return loop_->send(std::move(request), std::move(done));
}
void HttpClient::cancel(Ticket ticket) { loop_->cancel(ticket); }

}  // namespace bide::http_client
