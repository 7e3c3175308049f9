// run_in_child: one measurement in a process of its own, so that the memory and the threads of others do not count, and
// so that it can be killed. The calling process must have no other threads.

#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "bide/result.h"

namespace bide::bench {

enum class Ending { kByItself, kKilled };  // kKilled: by SIGKILL, as soon as it has reported.

// Bytes out of the child, which must call `report` once.
using ReportBytes = std::function<void(const std::string&)>;
Result<std::string> run_bytes_in_child(Ending ending, const std::function<void(const ReportBytes&)>& work);

// `work` takes a function and calls it once with its Result<T>; T is a plain struct of numbers.
template <class T, class Work>
Result<T> run_in_child(Ending ending, Work work) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto answer = run_bytes_in_child(ending, [&](const ReportBytes& report) {
    work([&](const Result<T>& result) {
      std::string bytes = result ? "+" : "-" + result.error().message;
      if (result) bytes.append(reinterpret_cast<const char*>(&*result), sizeof(T));
      report(bytes);
    });
  });
  if (!answer) return answer.error();
  if (answer->empty() || answer->front() == '-') {
    return Error{ErrorCode::kIoError, answer->empty() ? "a measurement ended without a result" : answer->substr(1)};
  }
  if (answer->size() != 1 + sizeof(T)) return Error{ErrorCode::kIoError, "a measurement was cut short"};
  T value;
  std::memcpy(&value, answer->data() + 1, sizeof value);
  return value;
}

}  // namespace bide::bench
