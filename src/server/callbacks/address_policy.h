// AddressPolicy: where callbacks may go. Asked when a job is created, with its URL, and again for every address that a
// name turns out to have, before it is connected to.
//
//   off           nowhere
//   allow-list    only what is listed
//   public-only   public addresses on usual ports, and what is listed
//
// An entry of the list is a host, or a range of addresses, with or without a port:
//
//   hooks.example.org          the name, on the usual ports; its addresses may be private
//   *.example.org:9443         every name below, on this port; its addresses must be public, or listed
//   10.1.0.0/16   [fd00::]/8   addresses in a range, written in the URL or led to by a name that is allowed
//   127.0.0.1:*                every port
//
// A listed name may lead to loopback and private addresses, but never to link-local, multicast and cloud metadata ones:
// those must be listed by address.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bide/result.h"
#include "server/callbacks/callback_url.h"
#include "server/callbacks/ip_address.h"

namespace bide::server {

// The stable code of a URL that is refused.
inline constexpr std::string_view kCallbackBlockedCode = "callback_address_blocked";

class AddressPolicy {
 public:
  enum class Mode : std::uint8_t { kOff, kAllowList, kPublicOnly };

  AddressPolicy() = default;  // Off.
  // `ports` are the usual ones. kInvalidArgument: the mode, or an entry of the list, is not one.
  static Result<AddressPolicy> make(std::string_view mode, const std::vector<std::string>& allow = {},
                                    std::vector<std::uint16_t> ports = {80, 443, 8080, 8443});

  Mode mode() const { return mode_; }

  // At create. kInvalidArgument names the rule; the URL is not repeated.
  Status check(std::string_view url) const;
  Status check(const CallbackUrl& url) const;

  // At send, before connecting: `host` is that of a URL that passed the check above.
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

// The same as policy.check(url): where a job with a callback is created.
Status check_callback_url(const AddressPolicy& policy, std::string_view url);

}  // namespace bide::server
