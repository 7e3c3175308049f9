// Result<T>: a value, or an Error that says what the caller can do about it.
//
//   Result<JobId> id = client.enqueue("resize", png);
//   if (!id) return fail(id.error());
//
// The member names are those of std::expected, which libstdc++ 12 does not have in C++20.

#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace bide {

// One code for each thing a caller can do. The set is closed.
enum class ErrorCode {
  kInvalidArgument,   // Fix the call: the message names the field and what is allowed.
  kNotFound,          // There is no such job, queue or file.
  kAlreadyExists,     // A live job holds the same unique key.
  kLeaseLost,         // The token is stale: another attempt owns the job, or it is finished.
  kWrongState,        // The job is not in a state in which this can be done.
  kUnavailable,       // Nothing was done: try again later.
  kUnconfirmed,       // Not known: it may have happened. Again only with the same id, or where twice is harmless.
  kOverloaded,        // Refused: try again later (see Pressure). Nothing was written, as far as the broker can tell.
  kDiskFull,          // Refused, nothing was written: free some space. Settling still works.
  kBusy,              // Another process owns the data directory.
  kPermissionDenied,  // The operating system or the broker said no.
  kCannotCreate,      // The place where the data should go cannot be made.
  kDamaged,           // Stored data fails its checksum: the message names file and offset.
  kNewerVersion,      // Written by a newer bide: upgrade this one.
  kIoError,           // The disk or the connection failed.
  kUnsupported,       // This broker cannot do that; the message says why.
  kHandlerFailed,     // The handler of a request said no, or failed; the message is its own. Change the request.
  kTimedOut,          // No reply before the deadline. The handler may have run all the same: tell whoever waits.
};

std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;  // One line, for people.
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // Asking for the value of an error is a mistake in the program: it prints the error and aborts.
  T& value() & { return check(), *std::get_if<0>(&state_); }
  const T& value() const& { return check(), *std::get_if<0>(&state_); }
  T&& value() && { return check(), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return *std::get_if<1>(&state_); }

  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(other));
  }

 private:
  void check() const {
    if (has_value()) return;
    std::fprintf(stderr, "bide: value() of an error: %s\n", error().message.c_str());
    std::abort();
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return *error_; }
  void value() const {
    if (has_value()) return;
    std::fprintf(stderr, "bide: value() of an error: %s\n", error_->message.c_str());
    std::abort();
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace bide
