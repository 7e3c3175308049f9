#include "server/http/content_coding.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "core/text.h"
#include "server/http/request.h"

namespace bide::server {

namespace {

// The largest window, with a gzip header.
constexpr int kGzipWindow = MAX_WBITS + 16;

// zlib never writes to what it reads, but does not say so in its types.
Bytef* input(std::string_view bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); }

// "q=0", "q=0.000"; whatever else it says is more than nothing.
bool is_never(std::string_view parameters) {
  const std::size_t q = parameters.find_first_of("qQ");
  if (q == std::string_view::npos || !parameters.substr(q + 1).starts_with('=')) return false;
  const std::string_view value = core::trimmed(parameters.substr(q + 2));
  return value.starts_with('0') && value.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

struct Gunzip::State {
  z_stream stream = {};
  bool between = true;  // Two members of a gzip file, or before the first.
  bool begun = false;
};

Gunzip::Gunzip() : state_(std::make_unique<State>()) {
  if (inflateInit2(&state_->stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
}

Gunzip::~Gunzip() { inflateEnd(&state_->stream); }

Gunzip::Result Gunzip::push(std::string_view bytes, const std::function<bool(std::string_view)>& take) {
  std::array<char, 16 * 1024> piece;
  z_stream& stream = state_->stream;
  stream.next_in = input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  state_->begun = state_->begun || !bytes.empty();
  do {
    if (stream.avail_in > 0 && state_->between && state_->stream.total_in > 0) inflateReset(&stream);
    if (stream.avail_in > 0) state_->between = false;
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = piece.size() - stream.avail_out;
    if (made > 0 && !take({piece.data(), made})) return Result::kStopped;
    if (result == Z_STREAM_END) {
      state_->between = true;
    } else if (result == Z_BUF_ERROR) {
      return Result::kOk;  // It has nothing left to work on.
    } else if (result != Z_OK) {
      return Result::kBroken;
    }
  } while (stream.avail_in > 0 || stream.avail_out == 0);
  return Result::kOk;
}

bool Gunzip::is_complete() const { return state_->begun && state_->between; }

std::string gzip(std::string_view bytes) {
  z_stream stream = {};
  if (deflateInit2(&stream, 1, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = input(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

bool accepts_gzip(std::string_view accept_encoding) {
  for (std::string_view rest = accept_encoding; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t semicolon = std::min(item.find(';'), item.size());
    const std::string_view name = core::trimmed(item.substr(0, semicolon));
    if (is_same_text(name, "gzip") || name == "*") return !is_never(item.substr(semicolon));
  }
  return false;
}

bool is_compressible(std::string_view content_type) {
  if (content_type.starts_with("text/")) return !content_type.starts_with("text/event-stream");
  return content_type.find("json") != std::string_view::npos || content_type.find("javascript") != std::string_view::npos ||
         content_type.find("svg") != std::string_view::npos || content_type.find("openmetrics") != std::string_view::npos;
}

}  // namespace bide::server
