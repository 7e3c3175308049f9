// Descriptor: owns one file descriptor of the operating system.

#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <string>
#include <utility>

namespace bide::platform {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  // Not looked at: whatever had to be durable was synced before, and Linux frees the number even on an error.
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  // Never inherited by programs that this process starts. Not valid() on failure, with the reason in errno.
  static Descriptor open(const std::string& path, int flags, mode_t mode = 0) {
    int number = -1;
    do {
      number = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    } while (number < 0 && errno == EINTR);
    return Descriptor(number);
  }

  bool valid() const { return number_ >= 0; }
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace bide::platform
