// SharedStore: the jobs in one data directory, for as many processes as want to work on it. The first owns the
// directory and serves the others through a socket in it; when the owner ends, one of the others takes over. Nobody who
// calls has to know which is which.
//
//   auto store = bide::brokers::shared::SharedStore::open(options);
//
// The options are those of whoever owns the directory; the others' have no effect until they own it themselves.

#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "brokers/shared/shared_client.h"
#include "brokers/shared/shared_server.h"
#include "core/forwarding_broker.h"
#include "engine/engine.h"

namespace bide::brokers::shared {

class SharedStore : public core::ForwardingBroker, public core::ForwardingInspector {
 public:
  // kBusy: another process has the directory and does not let us in for `patience`; the message names it.
  // kNewerVersion, kUnsupported: it runs another version of bide. Otherwise see engine::Ledger::open.
  static Result<std::unique_ptr<SharedStore>> open(engine::EngineOptions options,
                                                   Milliseconds patience = SharedClient::kPatience);
  // Completes what has been asked for, returns the leases of this process, and says goodbye to whoever is connected.
  ~SharedStore() override;

  bool is_owner() const { return owned() != nullptr; }

  // Once this process has become the owner, leases from before still count as held by the client.
  void extend(std::vector<LeaseRef> leases, Completion<std::vector<Extended>> done) override;
  void settle(std::vector<Settlement> settlements, Completion<std::vector<Status>> done) override;
  // The owner may run elsewhere in the file system.
  void backup(std::string target, Completion<void> done) override;

 protected:
  Broker& next_broker() const override;
  Inspector& next_inspector() const override;

 private:
  explicit SharedStore(engine::EngineOptions options) : options_(std::move(options)) {}

  Status take_over();
  Result<std::variant<OwnerConnection, LocalOwner>> find_owner();
  engine::Engine* owned() const { return owned_.load(std::memory_order_acquire); }

  engine::EngineOptions options_;
  std::shared_ptr<SharedClient> client_;  // Null when this process was the owner from the beginning.
  // Set once, by whoever opens the store or by the client's thread.
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<SharedServer> server_;
  std::atomic<engine::Engine*> owned_ = nullptr;
};

}  // namespace bide::brokers::shared
