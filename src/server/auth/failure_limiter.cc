#include "server/auth/failure_limiter.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace bide::server {

FailureLimiter::FailureLimiter(int at_once, Milliseconds forgotten_after, std::size_t callers)
    : at_once_(std::max(at_once, 1)),
      forgotten_after_us_(std::max<std::int64_t>(forgotten_after.count(), 1) * 1000),
      most_callers_(std::max<std::size_t>(callers, 1)) {}

Milliseconds FailureLimiter::fail(const std::string& caller, std::int64_t now_us) {
  std::lock_guard lock(mutex_);
  if (const auto found = by_name_.find(caller); found != by_name_.end()) {
    by_age_.splice(by_age_.begin(), by_age_, found->second);
  } else {
    if (by_age_.size() == most_callers_) {
      by_name_.erase(by_age_.back().name);
      by_age_.pop_back();
    }
    by_age_.push_front({caller});
    by_name_.emplace(by_age_.front().name, by_age_.begin());
  }
  Caller& known = by_age_.front();
  const std::int64_t clear_us = std::max(known.clear_us, now_us) + forgotten_after_us_;
  const std::int64_t too_much_us = clear_us - now_us - at_once_ * forgotten_after_us_;
  // A failure too many is not added to the others: whoever goes on trying does not wait for ever.
  if (too_much_us > 0) return Milliseconds((too_much_us + 999) / 1000);
  known.clear_us = clear_us;
  return Milliseconds(0);
}

std::size_t FailureLimiter::callers() const {
  std::lock_guard lock(mutex_);
  return by_age_.size();
}

namespace {

constexpr std::string_view kUnix = "unix";

struct Address {
  std::array<std::uint8_t, 16> bytes{};
  bool is_v4 = false;  // The last four are it.
};

// IPv4 also where it comes in the clothes of IPv6, as it does on a socket for both.
std::optional<Address> parse(std::string_view peer) {
  Address address;
  const std::string text(peer.substr(0, peer.find('%')));
  if (::inet_pton(AF_INET, text.c_str(), &address.bytes[12]) == 1) {
    address.is_v4 = true;
    return address;
  }
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) != 1) return std::nullopt;
  const auto& bytes = address.bytes;
  address.is_v4 = std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
                  bytes[10] == 0xff && bytes[11] == 0xff;
  return address;
}

}  // namespace

bool is_local(std::string_view peer) {
  if (peer == kUnix) return true;
  const std::optional<Address> address = parse(peer);
  if (!address) return false;
  if (address->is_v4) return address->bytes[12] == 127;
  std::array<std::uint8_t, 16> loopback{};
  loopback[15] = 1;
  return address->bytes == loopback;
}

std::string address_group(std::string_view peer) {
  const std::optional<Address> address = parse(peer);
  // What is no address cannot come from outside; it is cut so that it cannot be long either.
  if (!address) return std::string(peer.substr(0, 64));
  const auto* const bytes = reinterpret_cast<const char*>(address->bytes.data());
  return address->is_v4 ? std::string(bytes + 12, 4) : std::string(bytes, 8);
}

}  // namespace bide::server
