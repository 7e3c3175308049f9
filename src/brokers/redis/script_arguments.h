// ScriptArguments: the arguments of a script, in the order that its first lines describe. Bytes that are given by reference
// must live until the script was run.

#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bide/job.h"
#include "bide/lease.h"
#include "brokers/database/job_store.h"

namespace bide::brokers::redis {

class ScriptArguments {
 public:
  void add(const std::string& text) { views_.push_back(text); }  // By reference.
  void add(std::string&& text) { views_.push_back(kept_.emplace_back(std::move(text))); }
  void add(std::integral auto number) { add(std::to_string(number)); }
  void add_id(const JobId& id) { views_.emplace_back(reinterpret_cast<const char*>(id.bytes().data()), JobId::kSize); }
  void add_lease(const LeaseRef& lease) {
    add_id(lease.id);
    add(lease.token);
  }
  // The 7 arguments of accept() in scripts/common.lua.
  void add_job(const Job& job);
  // What scripts/end.lua is given for each ending.
  void add_ending(const database::Ending& ending);

  const std::vector<std::string_view>& all() const { return views_; }

 private:
  std::deque<std::string> kept_;  // Never moves what is in it.
  std::vector<std::string_view> views_;
};

inline std::string id_bytes(const JobId& id) {
  return std::string(reinterpret_cast<const char*>(id.bytes().data()), JobId::kSize);
}
// The first bytes of the text; nil when it is too short.
inline JobId id_in(std::string_view text) {
  std::array<std::uint8_t, JobId::kSize> bytes{};
  if (text.size() >= bytes.size()) std::memcpy(bytes.data(), text.data(), bytes.size());
  return JobId(bytes);
}
inline std::string client_bytes(database::ClientId client) {
  return std::string(reinterpret_cast<const char*>(&client), sizeof client);
}

Error key_is_held(const std::string& key, std::string_view holder_bytes);

}  // namespace bide::brokers::redis
