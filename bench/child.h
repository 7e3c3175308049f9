// measure_in_child: one measurement in a process of its own, so that the memory and the threads of others do not count,
// and so that it can be killed. The calling process must have no other threads.

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

// `work` is given a copy of the figures, a plain struct of numbers, and returns a Status; what it noted in the copy is in
// `figures` afterwards. Whatever a killed child is to have open then must outlive `work`.
template <class Figures, class Work>
Status measure_in_child(Figures& figures, Work work, Ending ending = Ending::kByItself) {
  static_assert(std::is_trivially_copyable_v<Figures>);
  const auto answer = run_bytes_in_child(ending, [&](const ReportBytes& report) {
    Figures measured = figures;
    const Status status = work(measured);
    std::string bytes = status ? "+" : "-" + status.error().message;
    if (status) bytes.append(reinterpret_cast<const char*>(&measured), sizeof measured);
    report(bytes);
  });
  if (!answer) return answer.error();
  if (answer->empty() || answer->front() == '-') {
    return Error{ErrorCode::kIoError, answer->empty() ? "a measurement ended without a result" : answer->substr(1)};
  }
  if (answer->size() != 1 + sizeof figures) return Error{ErrorCode::kIoError, "a measurement was cut short"};
  std::memcpy(&figures, answer->data() + 1, sizeof figures);
  return {};
}

}  // namespace bide::bench
