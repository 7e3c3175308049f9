#include "server/api/trace_context.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace bide::server {

namespace {

constexpr std::string_view kTraceParent = "traceparent";
constexpr std::string_view kTraceState = "tracestate";
constexpr std::size_t kMostStateBytes = 512;

// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01; later versions may go on behind it.
bool is_traceparent(std::string_view text) {
  constexpr std::string_view kShape = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  if (text.size() < kShape.size() || text.substr(0, 2) == "ff") return false;
  if (text.size() > kShape.size() && (text.substr(0, 2) == "00" || text[kShape.size()] != '-')) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool is_hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kShape[i] == 'x' ? !is_hex : text[i] != '-') return false;
  }
  const auto is_zero = [&](std::size_t from, std::size_t count) {
    return text.substr(from, count).find_first_not_of('0') == std::string_view::npos;
  };
  return !is_zero(3, 32) && !is_zero(36, 16);
}

std::size_t header_bytes_of(const Job& job) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : job.headers) bytes += name.size() + value.size();
  return bytes;
}

bool add(Job& job, std::string_view name, std::string_view value) {
  if (header_bytes_of(job) + name.size() + value.size() > Limits::kHeaderBytes) return false;
  job.headers.emplace_back(name, value);
  return true;
}

}  // namespace

void take_trace(const Request& request, Job& job) {
  const std::string_view parent = request.field(kTraceParent);
  if (parent.size() > kMostStateBytes || !is_traceparent(parent)) return;
  const bool has_own = std::any_of(job.headers.begin(), job.headers.end(),
                                   [](const auto& header) { return header.first == kTraceParent; });
  if (has_own || !add(job, kTraceParent, parent)) return;
  const std::string_view state = request.field(kTraceState);
  const bool printable = std::all_of(state.begin(), state.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!state.empty() && state.size() <= kMostStateBytes && printable) (void)add(job, kTraceState, state);
}

}  // namespace bide::server
