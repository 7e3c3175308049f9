#include "brokers/shared/shared_store.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "platform/clock.h"

namespace bide::brokers::shared {

namespace {

constexpr Milliseconds kFirstOpenWait{2};
constexpr Milliseconds kLongestOpenWait{50};
constexpr Milliseconds kHandshakeAtMost{1'000};

}  // namespace

Result<std::unique_ptr<SharedStore>> SharedStore::open(engine::EngineOptions options, Milliseconds patience) {
  std::unique_ptr<SharedStore> store(new SharedStore(std::move(options)));
  const std::int64_t deadline = platform::now_ms() + patience.count();
  for (Milliseconds pause = kFirstOpenWait;; pause = std::min(pause * 2, kLongestOpenWait)) {
    const Status taken = store->take_over();
    if (taken) return store;
    if (taken.error().code != ErrorCode::kBusy) return taken.error();
    const Milliseconds left(deadline - platform::now_ms());
    auto connected = connect_to_owner(store->options_.directory, std::max(left, Milliseconds(1)));
    if (connected) {
      // Taking over later must not depend on where the process has gone meanwhile.
      std::error_code ignored;
      const auto absolute = std::filesystem::absolute(store->options_.directory, ignored);
      if (!ignored) store->options_.directory = absolute.string();
      store->client_ = SharedClient::start(
          std::move(*connected), [raw = store.get()] { return raw->find_owner(); }, patience);
      return store;
    }
    if (connected.error().code != ErrorCode::kUnavailable) return connected.error();
    if (left.count() <= 0) return taken.error();
    // It is about to listen, or about to end.
    std::this_thread::sleep_for(std::min(pause, left));
  }
}

SharedStore::~SharedStore() {
  if (client_ != nullptr) client_->close();
  server_.reset();
  engine_.reset();
}

Status SharedStore::take_over() {
  auto opened = engine::Engine::open(options_);
  if (!opened) return opened.error();
  engine_ = std::move(*opened);
  // Where there can be no socket, the store is there for this process alone.
  if (auto server = SharedServer::open(options_.directory, *engine_)) server_ = std::move(*server);
  owned_.store(engine_.get(), std::memory_order_release);
  return {};
}

Result<std::variant<OwnerConnection, LocalOwner>> SharedStore::find_owner() {
  const Status taken = take_over();
  if (taken) return std::variant<OwnerConnection, LocalOwner>(LocalOwner{engine_.get(), engine_.get()});
  if (taken.error().code != ErrorCode::kBusy) return taken.error();
  auto connected = connect_to_owner(options_.directory, kHandshakeAtMost);
  if (!connected) return connected.error();
  return std::variant<OwnerConnection, LocalOwner>(std::move(*connected));
}

Broker& SharedStore::next_broker() const {
  if (engine::Engine* const engine = owned()) return *engine;
  return *client_;
}

Inspector& SharedStore::next_inspector() const {
  if (engine::Engine* const engine = owned()) return *engine;
  return *client_;
}

void SharedStore::extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) {
  engine::Engine* const engine = owned();
  if (engine == nullptr) return client_->extend(std::move(leases), std::move(done));
  if (client_ != nullptr) done = client_->tracking(leases, std::move(done));
  engine->extend(std::move(leases), std::move(done));
}

void SharedStore::settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) {
  engine::Engine* const engine = owned();
  if (engine == nullptr) return client_->settle(std::move(settlements), std::move(done));
  if (client_ != nullptr) done = client_->tracking(settlements, std::move(done));
  engine->settle(std::move(settlements), std::move(done));
}

void SharedStore::backup(std::string target, Completion<void> done) {
  std::error_code error;
  if (!target.empty()) target = std::filesystem::absolute(target, error).string();
  if (error) return done(Error{ErrorCode::kInvalidArgument, "the target of the backup: " + error.message()});
  next_inspector().backup(std::move(target), std::move(done));
}

}  // namespace bide::brokers::shared
