#include "server/callbacks/completion.h"

#include <openssl/evp.h>

#include <array>
#include <utility>

#include "core/completion.h"
#include "wire/job_json.h"
#include "wire/json_writer.h"
#include "wire/take_values.h"

namespace bide::server {

namespace {

// A UUID of version 8.
JobId id_for(const JobId& origin, std::string_view kind, std::uint64_t token) {
  std::string text = "bide completion\n" + origin.to_string() + "\n";
  text.append(kind).append("\n").append(std::to_string(token));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::array<std::uint8_t, JobId::kSize> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = digest[i];
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x80);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  return JobId(bytes);
}

// Whoever may enqueue can write the headers by hand.
std::int64_t number(std::string_view text) { return wire::parse_whole(text).value_or(0); }

}  // namespace

std::optional<std::string> on_done_body(const Job& job) {
  using core::header_of;
  const std::string_view state = header_of(job, core::kOriginStateHeader);
  if (job.kind != core::kOnDoneKind || state.empty()) return std::nullopt;
  std::string body;
  wire::JsonWriter out(body);
  out.begin_object().field("id", header_of(job, core::kOriginIdHeader));
  out.field("kind", header_of(job, core::kOriginKindHeader)).field("queue", header_of(job, core::kOriginQueueHeader));
  out.field("state", state).field("attempts", number(header_of(job, core::kOriginAttemptsHeader)));
  if (state == "dead") {
    out.field("reason", header_of(job, core::kOriginReasonHeader)).field("error", job.body);
  } else if (const auto bytes = header_of(job, core::kOriginResultBytesHeader); !bytes.empty()) {
    out.field("result_bytes", number(bytes));
  } else if (!job.body.empty()) {
    const std::string_view type = content_type_or_default(job.content_type);
    wire::write_content(out, "result", job.body, type);
    out.field("result_content_type", type);
  }
  out.end_object();
  return body;
}

Settlement with_completion(Settlement settlement, const Job& job, std::uint32_t attempts) {
  for (Job& told : core::completion_jobs(job, attempts, settlement.outcome)) {
    told.id = id_for(job.id, told.kind, settlement.lease.token);
    settlement.effects.push_back(std::move(told));
  }
  return settlement;
}

}  // namespace bide::server
