// LocalSocket and LocalListener: streams between processes of one machine, named by a file in a directory. Waker wakes
// a thread that waits in wait_ready(). Nothing but wait_ready() ever blocks.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bide/result.h"
#include "platform/descriptor.h"

namespace bide::platform {

// No bytes and not closed: the other side must do something first.
struct Transfer {
  std::size_t bytes = 0;
  bool closed = false;  // Nothing goes through any more, for whatever reason.
};

class LocalSocket {
 public:
  // kNotFound: there is no such file. kUnavailable: nobody listens, or too many wait to be let in. kPermissionDenied.
  static Result<LocalSocket> connect(const std::string& directory, const std::string& name);

  Transfer send(std::span<const std::string_view> pieces);
  Transfer receive(char* into, std::size_t size);

  // The other end belongs to this user, or to root.
  bool is_trusted() const;
  int descriptor() const { return descriptor_.get(); }

 private:
  friend class LocalListener;
  explicit LocalSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

class LocalListener {
 public:
  // Takes the place of a file of that name, which must be one that nobody listens on any more. Only this user may
  // connect. The file goes with the listener.
  static Result<LocalListener> listen(const std::string& directory, const std::string& name);
  LocalListener(LocalListener&&) = default;
  LocalListener& operator=(LocalListener&&) = delete;
  ~LocalListener();

  // Nothing when nobody waits. An error when there are no descriptors left: try again later.
  Result<std::optional<LocalSocket>> accept();
  int descriptor() const { return descriptor_.get(); }

 private:
  LocalListener(Descriptor directory, Descriptor descriptor, std::string name)
      : directory_(std::move(directory)), descriptor_(std::move(descriptor)), name_(std::move(name)) {}

  Descriptor directory_;
  Descriptor descriptor_;
  std::string name_;
};

// Safe to use from any thread.
class Waker {
 public:
  Waker();
  void wake();
  void clear();
  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
};

// Which events of a descriptor are wanted, and after wait_ready() which are there. Without wanted events it is ignored.
struct Readiness {
  int descriptor = -1;
  bool read = false;
  bool write = false;
};

// poll(2): replaces the wanted events by those that are there. No timeout: waits without limit.
void wait_ready(std::span<Readiness> all, std::optional<std::chrono::milliseconds> at_most);

// Which user the process at the other end of a connection belongs to, as far as this machine can tell. The socket is
// connected: a Unix socket, or TCP within this machine. Nothing when it is neither, or nobody can tell. Asks the kernel for
// TCP: not for every request.
std::optional<uid_t> peer_user(int socket);

}  // namespace bide::platform
