// AddressPolicy: where callbacks may go. Checked when a job is created, with its URL, and for every address that its host
// resolves to, before connecting.
//
//   off           nowhere
//   allow-list    only what is listed
//   public-only   public addresses on usual ports, and what is listed
//
// An entry of the list is a host, or a range of addresses, with or without a port:
//
//   hooks.example.org          the name, on the usual ports; its addresses may be private
//   *.example.org:9443         every name below, on this port; its addresses must be public, or listed
//   10.1.0.0/16   [fd00::]/8   addresses in a range, written in the URL or resolved from an allowed name
//   127.0.0.1:*                every port
//
// A listed name may resolve to loopback and private addresses, but not to link-local, multicast and cloud metadata ones:
// those must be listed by address.

#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bide/result.h"
#include "server/callbacks/callback_url.h"
#include "server/callbacks/ip_address.h"
#include "server/http/listen_address.h"

namespace bide::server {

// The code of the problem when a URL is refused.
inline constexpr std::string_view kCallbackBlockedCode = "callback_address_blocked";

class AddressPolicy {
 public:
  enum class Mode : std::uint8_t { kOff, kAllowList, kPublicOnly };

  AddressPolicy() = default;  // Off.
  // `ports` are allowed where an entry names none. kInvalidArgument: an unknown mode, an entry that cannot be read.
  static Result<AddressPolicy> make(std::string_view mode, const std::vector<std::string>& allow = {},
                                    std::vector<std::uint16_t> ports = {80, 443, 8080, 8443});

  Mode mode() const { return mode_; }

  // When a job is created. kInvalidArgument names the rule, and does not repeat the URL.
  Status check(std::string_view url) const;
  Status check(const CallbackUrl& url) const;

  // Before connecting; `host` is that of a URL that passed the check above.
  Status check_address(std::string_view host, const IpAddress& address, std::uint16_t port) const;

 private:
  struct Entry {
    std::string name = {};  // With a dot in front: everything below it.
    std::optional<IpRange> range = {};
    std::optional<std::uint16_t> port = {};
    bool any_port = false;
  };

  static std::optional<Entry> parse_entry(std::string_view text);
  bool admits_port(const Entry& entry, std::uint16_t port) const;
  bool is_usual_port(std::uint16_t port) const;
  bool lists_address(const IpAddress& address, std::uint16_t port) const;
  const Entry* find_name(std::string_view host, std::uint16_t port) const;
  Error blocked(std::string_view rule, const std::string& reason) const;

  Mode mode_ = Mode::kOff;
  std::vector<Entry> entries_;
  std::vector<std::uint16_t> ports_;
};

std::string_view to_string(AddressPolicy::Mode mode);

// In the errors of what OwnListeners refused.
inline constexpr std::string_view kOwnListenerRule = "(rule: own listener)";

// Where this server itself listens. No callback may go there, whatever the policy allows: requests from this machine may
// need no token, and whoever may enqueue a job could have the server make one. Safe to share between threads.
class OwnListeners {
 public:
  void set(const std::vector<ListenAddress>& addresses);

  // A connection to this address would reach this server.
  bool has(const IpAddress& address, std::uint16_t port) const;
  // The same for a URL; names are not resolved, except localhost.
  bool has(std::string_view url) const;

 private:
  mutable std::mutex mutex_;  // Guards everything below.
  std::vector<std::pair<IpAddress, std::uint16_t>> listeners_;
};

}  // namespace bide::server
