#include "server/callbacks/pending_settles.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "core/quote.h"
#include "wire/lease_json.h"

namespace bide::server {

namespace {

namespace fs = std::filesystem;

std::optional<Lease> read_entry(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto leases = wire::read_leases(text);
  if (!leases || leases->size() != 1) return std::nullopt;
  std::error_code unknown;
  const auto written = fs::last_write_time(path, unknown);
  if (unknown) return std::nullopt;
  const auto since = std::chrono::floor<Milliseconds>(fs::file_time_type::clock::now() - written);
  leases->front().age += std::max(Milliseconds(0), since);
  return std::move(leases->front());
}

}  // namespace

std::vector<Lease> PendingSettles::read() const {
  std::vector<Lease> leases;
  std::error_code failed;
  if (folder_.empty()) return leases;
  for (fs::directory_iterator at(folder_, failed), end; !failed && at != end; at.increment(failed)) {
    auto lease = read_entry(at->path());
    if (lease && at->path() == path_of({lease->job.id, lease->token})) {
      leases.push_back(std::move(*lease));
    } else {
      std::error_code ignored;
      fs::remove(at->path(), ignored);
    }
  }
  return leases;
}

Status PendingSettles::add(Lease lease) const {
  if (folder_.empty()) return {};
  const auto refused = [this](const std::string& why) {
    return Error{ErrorCode::kIoError, "cannot write into " + core::quoted(folder_) + ": " + why};
  };
  std::error_code failed;
  if (fs::create_directory(folder_, failed)) fs::permissions(folder_, fs::perms::owner_all, failed);
  if (failed) return refused(failed.message());
  lease.job.body.clear();
  lease.job.headers.clear();  // The callback URL may hold a secret.
  lease.history.clear();
  std::ofstream file(path_of({lease.job.id, lease.token}), std::ios::binary | std::ios::trunc);
  file << wire::leases_json({std::move(lease)});
  file.close();
  return file ? Status() : Status(refused("the disk may be full"));
}

void PendingSettles::remove(const LeaseRef& lease) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove(path_of(lease), ignored);
}

std::string PendingSettles::path_of(const LeaseRef& lease) const {
  return folder_ + "/" + lease.id.to_string() + "." + std::to_string(lease.token);
}

}  // namespace bide::server
