#include "brokers/rabbitmq/compat/async_worker_message.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "brokers/rabbitmq/compat/nippy.h"

namespace bide::brokers::rabbitmq::compat {

namespace {

constexpr int kMostDoublings = 40;

Error not_a_job(const std::string& why) { return {ErrorCode::kInvalidArgument, "not a job of async-worker: " + why}; }

std::optional<std::string> name_of(const ClojureValue& value) {
  if (const auto* keyword = std::get_if<ClojureKeyword>(&value.value)) return keyword->name;
  if (const auto* symbol = std::get_if<ClojureSymbol>(&value.value)) return symbol->name;
  if (const auto* text = std::get_if<std::string>(&value.value)) return *text;
  return std::nullopt;
}

// Reads the entries of the map one by one and notes what it finds.
class MapReader {
 public:
  explicit MapReader(AsyncWorkerMessage& message) : message_(message), data_(message.data), reader_(data_) {}

  Status read() {
    const Result<std::size_t> size = reader_.map_size();
    if (!size) return size.error();
    for (left_ = *size; left_ > 0; --left_) {
      if (Status entry = read_entry(); !entry) return entry;
    }
    if (!reader_.done()) return not_a_job("something follows the map");
    if (message_.job_name.empty()) return not_a_job("it has no :job-name");
    if (message_.iteration_size == 0) return not_a_job("it has no :current-iteration");
    if (message_.args_nippy.empty()) {
      message_.args = ClojureValue{};
      message_.args_nippy = freeze(*message_.args);
    }
    return {};
  }

 private:
  Status read_entry() {
    const Result<ClojureValue> key = reader_.next();
    if (!key) return key.error();
    const auto* keyword = std::get_if<ClojureKeyword>(&key->value);
    const std::string name = keyword == nullptr ? "" : keyword->name;
    const std::size_t start = reader_.at();
    Result<ClojureValue> value = reader_.next();
    if (name == "args") {
      if (!value && (value.error().code != ErrorCode::kUnsupported || !leap_over_args(start))) return value.error();
      message_.args_nippy = kNippyHeader;
      message_.args_nippy += data_.substr(start, reader_.at() - start);
      if (value) message_.args = std::move(*value);
      return {};
    }
    if (!value) return value.error();
    if (name == "job-name") {
      const std::optional<std::string> job = name_of(*value);
      if (!job || job->empty()) return not_a_job(":job-name is no name");
      message_.job_name = *job;
      return {};
    }
    if (name == "current-iteration" || name == "retry-max" || name == "retry-timeout-ms") {
      return take_number(name, *value, start);
    }
    return {};
  }

  Status take_number(const std::string& name, const ClojureValue& value, std::size_t start) {
    const auto* number = std::get_if<std::int64_t>(&value.value);
    const bool is_nil = std::holds_alternative<std::monostate>(value.value);
    if (number == nullptr && (!is_nil || name == "current-iteration")) return not_a_job(':' + name + " is no number");
    if (number != nullptr && *number < 0) return not_a_job(':' + name + " is negative");
    if (name == "current-iteration") {
      message_.current_iteration = *number;
      message_.iteration_at = start;
      message_.iteration_size = reader_.at() - start;
    } else if (number != nullptr) {
      (name == "retry-max" ? message_.retry_max : message_.retry_timeout_ms) = *number;
    }
    return {};
  }

  // The arguments hold something that cannot be read past. They end where one of the other keys begins, from which on
  // everything must be readable up to the very end; when there are two such places nobody can tell.
  bool leap_over_args(std::size_t start) {
    std::optional<std::size_t> found;
    if (left_ == 1) found = data_.size();
    for (const std::string_view key : {"job-name", "current-iteration", "retry-max", "retry-timeout-ms"}) {
      std::string wanted;
      append_nippy(wanted, ClojureValue{ClojureKeyword{std::string(key)}});
      for (std::size_t at = data_.find(wanted, start); at != std::string_view::npos; at = data_.find(wanted, at + 1)) {
        NippyReader rest(data_.substr(at));
        std::size_t entries = 0;
        bool readable = true;
        while (readable && !rest.done() && entries < left_) {
          readable = rest.next() && rest.next();
          ++entries;
        }
        if (!readable || !rest.done() || entries + 1 != left_) continue;
        if (found) return false;
        found = at;
      }
    }
    if (!found) return false;
    reader_.skip_to(*found);
    return true;
  }

  AsyncWorkerMessage& message_;
  std::string_view data_;
  NippyReader reader_;
  std::size_t left_ = 0;
};

}  // namespace

std::int64_t AsyncWorkerMessage::delay_ms() const {
  const std::int64_t first = retry_timeout_ms.value_or(0);
  const std::int64_t doublings = std::min<std::int64_t>(current_iteration, kMostDoublings);
  if (first > std::numeric_limits<std::int64_t>::max() >> (doublings + 1))
    return std::numeric_limits<std::int64_t>::max();
  return first << doublings;
}

Result<AsyncWorkerMessage> parse_async_worker_message(std::string_view body) {
  Result<std::string> data = unwrap_nippy(body);
  if (!data) return data.error();
  AsyncWorkerMessage message;
  message.data = std::move(*data);
  if (Status read = MapReader(message).read(); !read) return read.error();
  return message;
}

std::string with_iteration(const AsyncWorkerMessage& message, std::int64_t iteration) {
  std::string body(kNippyHeader);
  body.append(message.data, 0, message.iteration_at);
  append_nippy(body, ClojureValue{iteration});
  body.append(message.data, message.iteration_at + message.iteration_size);
  return body;
}

std::string async_worker_body(std::string_view job_name, std::string_view args_nippy, std::int64_t retry_max,
                              std::int64_t retry_timeout_ms) {
  const auto keyword = [](std::string_view name) { return ClojureValue{ClojureKeyword{std::string(name)}}; };
  std::string body(kNippyHeader);
  // The head of a map of five, then its entries in the order in which async-worker writes them.
  body += "\x70\x05";
  append_nippy(body, keyword("job-name"));
  append_nippy(body, keyword(job_name));
  append_nippy(body, keyword("args"));
  body += args_nippy.substr(kNippyHeader.size());
  for (const auto& [name, number] : {std::pair<std::string_view, std::int64_t>{"current-iteration", 0},
                                     {"retry-max", retry_max},
                                     {"retry-timeout-ms", retry_timeout_ms}}) {
    append_nippy(body, keyword(name));
    append_nippy(body, ClojureValue{number});
  }
  return body;
}

}  // namespace bide::brokers::rabbitmq::compat
