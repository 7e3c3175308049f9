// Tls: a certificate and its key, and channels that use them. The files can be read again while connections are open:
// those keep what they began with.

#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "bide/result.h"
#include "server/http/channel.h"

namespace bide::server {

class Tls {
 public:
  // kInvalidArgument: the files are not PEM, or do not belong together. kNotFound, kPermissionDenied: they cannot be
  // read.
  static Result<std::unique_ptr<Tls>> load(std::string certificate_file, std::string key_file);
  ~Tls();

  // On an error everything stays as it was.
  Status reload();
  // The files are others than those that were loaded last.
  bool has_changed() const;

  // Safe to call from any thread.
  std::unique_ptr<Channel> channel(int socket) const;

 private:
  struct Context;
  Tls(std::string certificate_file, std::string key_file);

  const std::string certificate_file_;
  const std::string key_file_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::shared_ptr<Context> context_;
  std::string loaded_;  // What the files were.
};

}  // namespace bide::server
