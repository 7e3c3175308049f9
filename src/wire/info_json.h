// What an inspector tells, as JSON, both ways. Reading is for answers of a server: it takes fields that it does not
// know in its stride, so that an older client gets along with a newer server.
//
//   job           the fields of the job (wire/job_json.h) and state, due, attempts, counts, errors, worker, finished,
//                 dead_reason, note, result
//   jobs          {"jobs":[...],"next":"..."}   next is null on the last page
//   queues        {"queues":[{"name":...,"paused":...,"scheduled":...,"ready":...,"oldest_ready":...,"workers":...}]}
//   explanation   {"code":"no_worker","text":"..."}
//   audit         {"ok":true,"accepted":...,"done":...,"removed":...,"live":...,"details":{...},"problems":[...]}
//   pressure      {"level":"ok","reason":"","retry_after_ms":0}
//   capabilities  {"inspect":true, ..., "why_not":""}
//   ids           {"results":[{"id":...,"status":200}]} for what became of each

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "wire/json_reader.h"
#include "wire/json_writer.h"
#include "wire/problem.h"

namespace bide::wire {

void write(JsonWriter& out, const JobInfo& info);
void write(JsonWriter& out, const QueueInfo& info);
void write(JsonWriter& out, const AttemptCounts& counts);
void write(JsonWriter& out, const std::vector<AttemptError>& history);

AttemptCounts read_counts(JsonReader& in);
std::vector<AttemptError> read_history(JsonReader& in);

struct CapabilityName {
  std::string_view name;
  bool Capabilities::*member;
};
std::span<const CapabilityName> capability_names();

std::string job_info_json(const JobInfo& info);
std::string job_page_json(const JobPage& page);
std::string queues_json(const std::vector<QueueInfo>& queues);
std::string explanation_json(const Explanation& explanation);
std::string audit_json(const AuditReport& report);
std::string pressure_json(const Pressure& pressure);
std::string capabilities_json(const Capabilities& capabilities);
std::string count_json(std::string_view name, std::uint64_t count);  // {"removed":3}
std::string id_results_json(const std::vector<JobId>& ids, const std::vector<Status>& statuses);

// kIoError: the answer is not what a server of this kind gives.
Result<JobInfo> read_job_info(std::string_view body);
Result<JobPage> read_job_page(std::string_view body);
Result<std::vector<QueueInfo>> read_queues(std::string_view body);
Result<Explanation> read_explanation(std::string_view body);
Result<AuditReport> read_audit(std::string_view body);
Result<Pressure> read_pressure(std::string_view body);
Result<Capabilities> read_capabilities(std::string_view body);
Result<std::uint64_t> read_count(std::string_view body, std::string_view name);
Result<std::vector<Status>> read_id_results(std::string_view body);

}  // namespace bide::wire
