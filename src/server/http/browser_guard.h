// BrowserGuard: keeps other people's web pages from using the browser of somebody who may ask us. A page can send
// requests to this machine, and with a name of its own that it lets point here (DNS rebinding) it could read the answers.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/request.h"
#include "wire/problem.h"

namespace bide::server {

class BrowserGuard {
 public:
  // Names without port, besides localhost and addresses. A name that begins with a dot stands for all below it.
  explicit BrowserGuard(std::vector<std::string> hosts);

  // 403 host_not_allowed: the name in Host is not one of ours. Whoever shows a token may use any name: a page that knows
  // the token needs no tricks. 403 cross_site: a change that a page of another site asks for.
  std::optional<wire::Problem> check(const Request& request) const;

 private:
  bool is_ours(std::string_view host) const;

  std::vector<std::string> hosts_;
};

}  // namespace bide::server
