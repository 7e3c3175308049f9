#include "bide/events.h"

#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bide/wait.h"

namespace bide {

namespace {

// Nobody else has it: 128 random bits.
std::string unused_queue_name() {
  std::random_device random;
  std::string name = "temporary.";
  for (int i = 0; i < 4; ++i) {
    static constexpr char kDigits[] = "0123456789abcdef";
    const unsigned bits = random();
    for (int shift = 28; shift >= 0; shift -= 4) name += kDigits[(bits >> shift) & 0xfu];
  }
  return name;
}

}  // namespace

Status bind(const Client& client, Binding binding) {
  return wait<void>([&](auto done) { client.inspector().bind(std::move(binding), std::move(done)); });
}

Status unbind(const Client& client, std::string queue) { return bind(client, {.queue = std::move(queue)}); }

Result<std::vector<Binding>> bindings(const Client& client) {
  return wait<std::vector<Binding>>([&](auto done) { client.inspector().bindings(std::move(done)); });
}

Result<TemporaryGroup> TemporaryGroup::open(Client client, std::vector<std::string> patterns, Milliseconds idle) {
  if (idle < std::chrono::seconds(1)) {
    return Error{ErrorCode::kInvalidArgument, "idle " + std::to_string(idle.count()) + " ms is too short; allowed: from 1s"};
  }
  std::string queue = unused_queue_name();
  if (Status bound = bind(client, {.queue = queue, .patterns = std::move(patterns), .idle = idle}); !bound) {
    return bound.error();
  }
  return TemporaryGroup(std::move(client), std::move(queue));
}

TemporaryGroup::TemporaryGroup(Client client, std::string queue) : client_(std::move(client)), queue_(std::move(queue)) {}

TemporaryGroup::TemporaryGroup(TemporaryGroup&& other) noexcept
    : client_(std::move(other.client_)), queue_(std::exchange(other.queue_, {})) {}

TemporaryGroup& TemporaryGroup::operator=(TemporaryGroup&& other) noexcept {
  if (this == &other) return *this;
  (void)close();
  client_ = std::move(other.client_);
  queue_ = std::exchange(other.queue_, {});
  return *this;
}

TemporaryGroup::~TemporaryGroup() { (void)close(); }

Status TemporaryGroup::close() {
  if (queue_.empty()) return {};
  return unbind(client_, std::exchange(queue_, {}));
}

}  // namespace bide
