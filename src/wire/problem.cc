#include "wire/problem.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/quote.h"

namespace bide::wire {

namespace {

// By status, then by name. Codes of core's rules and of the seam are among them.
constexpr auto kKinds = std::to_array<ProblemKind>({
    {"ambiguous_framing", 400, "The request can be read in two ways"},
    {"bad_request", 400, "The request cannot be understood"},
    {"duplicate_field", 400, "A field is given twice"},
    {"duplicate_parameter", 400, "A query parameter is given twice"},
    {"empty_body", 400, "The request has no body"},
    {"expected_object", 400, "An object is expected"},
    {"invalid_cursor", 400, "The cursor is not one that was given out"},
    {"invalid_idempotency_key", 400, "The Idempotency-Key is not valid"},
    {"invalid_gzip", 400, "The body is not valid gzip"},
    {"invalid_json", 400, "The body is not valid JSON"},
    {"invalid_limit", 400, "The limit is out of range"},
    {"invalid_target", 400, "The path or the query is not valid"},
    {"json_too_deep", 400, "The JSON is nested too deep"},
    {"malformed_request", 400, "The request is not valid HTTP"},
    {"plain_on_tls_port", 400, "This port speaks TLS"},
    {"tls_on_plain_port", 400, "This port speaks plain HTTP"},
    {"trailers_refused", 400, "Fields after the body are not accepted"},
    {"unknown_field", 400, "A field is not known"},
    {"unknown_parameter", 400, "A query parameter is not known"},
    {"invalid_parameter", 400, "A query parameter is not valid"},
    {"unauthorized", 401, "A valid token is needed"},
    {"forbidden", 403, "The token does not allow this"},
    {"cross_site", 403, "Requests from other sites are refused"},
    {"host_not_allowed", 403, "The host name is not one of this server's"},
    {"not_found", 404, "There is no such thing"},
    {"no_such_route", 404, "There is nothing at this path"},
    {"method_not_allowed", 405, "The method is not allowed here"},
    {"request_timeout", 408, "The request took too long to arrive"},
    {"already_exists", 409, "The unique key, or the name, is taken"},
    {"idempotency_conflict", 409, "The first request with this Idempotency-Key is still under way"},
    {"lease_lost", 409, "The lease is not held any more"},
    {"wrong_state", 409, "The job is not in a state for this"},
    {"body_too_large", 413, "The body is too large"},
    {"too_many_items", 413, "The batch has too many items"},
    {"uri_too_long", 414, "The address is too long"},
    {"unsupported_media_type", 415, "The content type is not understood"},
    {"expectation_failed", 417, "The expectation cannot be met"},
    {"callback_address_blocked", 422, "The callback address is not allowed"},
    {"conflicting_fields", 422, "Two fields exclude each other"},
    {"headers_too_large", 422, "The job's headers are too large"},
    {"idempotency_key_reused", 422, "The Idempotency-Key was used for another request"},
    {"idempotency_unsupported", 422, "This broker cannot keep an Idempotency-Key"},
    {"invalid_argument", 422, "A value is not valid"},
    {"invalid_batch", 422, "Some items are not valid; nothing was enqueued"},
    {"invalid_base64", 422, "The text is not base64"},
    {"invalid_callback", 422, "The callback is not valid"},
    {"invalid_content_type", 422, "The content type is not valid"},
    {"invalid_cron", 422, "The cron expression is not valid"},
    {"invalid_duration", 422, "The duration is not valid"},
    {"invalid_group", 422, "The group is not valid"},
    {"invalid_header", 422, "A header of the job is not valid"},
    {"invalid_id", 422, "The id is not a UUID"},
    {"invalid_kind_name", 422, "The kind is not a valid name"},
    {"invalid_label", 422, "The label is not one of the request"},
    {"invalid_outcome", 422, "The outcome is not known"},
    {"invalid_owner", 422, "The owner is not a valid name"},
    {"invalid_past", 422, "The past of the job is not valid"},
    {"invalid_predecessor", 422, "A job cannot wait for this one"},
    {"invalid_priority", 422, "The priority is out of range"},
    {"invalid_queue_name", 422, "The queue's name is not valid"},
    {"invalid_rate", 422, "The rate is not valid"},
    {"invalid_retry", 422, "The retry policy is not valid"},
    {"invalid_schedule_name", 422, "The schedule's name is not valid"},
    {"invalid_time", 422, "The time is not valid"},
    {"invalid_token", 422, "The lease token is not valid"},
    {"invalid_unique_key", 422, "The unique key is not valid"},
    {"missing_field", 422, "A field is missing"},
    {"out_of_range", 422, "A number is out of range"},
    {"too_far", 422, "The time is too far away"},
    {"too_many_predecessors", 422, "The job waits for too many others"},
    {"unknown_zone", 422, "There is no such time zone"},
    {"wrong_type", 422, "A value has the wrong type"},
    {"aborted", 424, "Nothing was done because another item is not valid"},
    {"overloaded", 429, "There is too much to do: try again later"},
    {"rate_limited", 429, "Too many requests: try again later"},
    {"header_too_large", 431, "The header of the request is too large"},
    {"cannot_create", 500, "The place for the data cannot be made"},
    {"damaged", 500, "Stored data is damaged"},
    {"internal", 500, "Something went wrong in the server"},
    {"io_error", 500, "The disk or the broker's connection failed"},
    {"newer_version", 500, "The data was written by a newer version"},
    {"unsupported", 501, "This broker cannot do that"},
    {"handler_failed", 502, "The handler of the request failed"},
    {"permission_denied", 502, "The broker refused the server"},
    {"busy", 503, "The data directory is owned by another process"},
    {"draining", 503, "The server is shutting down"},
    {"unavailable", 503, "Nothing was done: try again later"},
    {"timed_out", 504, "No reply came before the deadline"},
    {"unconfirmed", 504, "Not known: it may have happened"},
    {"version_not_supported", 505, "The version of HTTP is not supported"},
    {"disk_full", 507, "The disk is full"},
});

constexpr std::array kErrorCodes = {
    ErrorCode::kInvalidArgument, ErrorCode::kNotFound,     ErrorCode::kAlreadyExists,    ErrorCode::kLeaseLost,
    ErrorCode::kWrongState,      ErrorCode::kUnavailable,  ErrorCode::kUnconfirmed,      ErrorCode::kOverloaded,
    ErrorCode::kDiskFull,        ErrorCode::kBusy,         ErrorCode::kPermissionDenied, ErrorCode::kCannotCreate,
    ErrorCode::kDamaged,         ErrorCode::kNewerVersion, ErrorCode::kIoError,          ErrorCode::kUnsupported,
    ErrorCode::kHandlerFailed,   ErrorCode::kTimedOut,
};

const ProblemKind* find_kind(std::string_view code) {
  const auto found =
      std::find_if(kKinds.begin(), kKinds.end(), [code](const ProblemKind& k) { return k.code == code; });
  return found == kKinds.end() ? nullptr : &*found;
}

ErrorCode code_by_status(int status) {
  switch (status) {
    case 401:
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kWrongState;
    case 408:
    case 424:
    case 503:
      return ErrorCode::kUnavailable;
    case 429:
      return ErrorCode::kOverloaded;
    case 501:
      return ErrorCode::kUnsupported;
    case 507:
      return ErrorCode::kDiskFull;
    default:
      return status >= 400 && status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kUnconfirmed;
  }
}

}  // namespace

std::span<const ProblemKind> problem_kinds() { return kKinds; }

Problem make_problem(std::string_view code, std::string detail, std::string field) {
  const ProblemKind* kind = find_kind(code);
  return {.status = kind == nullptr ? 500 : kind->status,
          .code = std::string(code),
          .detail = std::move(detail),
          .field = std::move(field)};
}

Problem problem_of(const Error& error) { return make_problem(to_string(error.code), error.message); }

Problem problem_of(const JsonFault& fault) {
  std::string detail = fault.text;
  if (fault.code == "invalid_json") detail = "invalid JSON at byte " + std::to_string(fault.offset) + ": " + detail;
  Problem problem = make_problem(fault.code, std::move(detail));
  problem.offset = fault.offset;
  return problem;
}

Error error_of(const Problem& problem) {
  for (const ErrorCode code : kErrorCodes) {
    if (to_string(code) == problem.code) return {code, problem.detail};
  }
  return {code_by_status(problem.status), problem.detail};
}

void write(JsonWriter& out, const Problem& problem) {
  const ProblemKind* kind = find_kind(problem.code);
  out.begin_object();
  out.field("type", "urn:bide:problem:" + problem.code);
  if (kind != nullptr) out.field("title", kind->title);
  out.field("status", problem.status).field("code", problem.code).field("detail", problem.detail);
  if (!problem.field.empty()) out.field("field", problem.field);
  if (problem.offset) out.field("offset", *problem.offset);
  if (problem.retry_after.count() > 0) out.field("retry_after_ms", problem.retry_after);
  out.end_object();
}

std::string problem_json(const Problem& problem) {
  std::string text;
  JsonWriter out(text);
  write(out, problem);
  return text;
}

Problem read_problem(JsonReader& in) {
  Problem problem{.status = 0};
  const auto whole = [&in](auto& number) {
    const std::string_view text = in.number();
    std::from_chars(text.data(), text.data() + text.size(), number);
  };
  in.object();
  while (const auto name = in.field()) {
    const bool is_text = in.type() == JsonReader::Type::kString;
    const bool is_number = in.type() == JsonReader::Type::kNumber;
    if (*name == "code" && is_text) {
      problem.code = in.string();
    } else if (*name == "detail" && is_text) {
      problem.detail = in.string();
    } else if (*name == "field" && is_text) {
      problem.field = in.string();
    } else if (*name == "status" && is_number) {
      whole(problem.status);
    } else if (*name == "offset" && is_number) {
      whole(problem.offset.emplace());
    } else if (*name == "retry_after_ms" && is_number) {
      std::int64_t ms = 0;
      whole(ms);
      problem.retry_after = Milliseconds(std::max<std::int64_t>(0, ms));
    } else {
      in.raw();
    }
  }
  return problem;
}

Problem read_problem(std::string_view body, int status) {
  JsonReader in(body, kDeepestAnswer);
  Problem problem = read_problem(in);
  in.end();
  if (!in.ok() || problem.code.empty()) {
    problem = {.status = status};
    problem.detail = "the server answered " + std::to_string(status);
    if (!body.empty()) problem.detail += " and " + core::quoted(body);
  }
  problem.status = status;
  return problem;
}

}  // namespace bide::wire
