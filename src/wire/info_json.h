// What an inspector tells, as JSON, both ways. Reading is for answers of a server.
//
//   job           the fields of the job (wire/job_json.h) and state, due, attempts, counts, errors, worker, progress, steps,
//                 waits_for, finished, dead_reason, note, result
//   jobs          {"jobs":[...],"next":"..."}   next is null on the last page
//   queues        {"queues":[{"name":...,"paused":...,"scheduled":...,"ready":...,"oldest_ready":...,"workers":...}]}
//   explanation   {"code":"no_worker","text":"..."}
//   audit         {"ok":true,"accepted":...,"done":...,"removed":...,"live":...,"details":{...},"problems":[...]}
//   pressure      {"level":"ok","reason":"","retry_after_ms":0,"cause":"none"}
//   capabilities  {"inspect":true, ..., "why_not":""}
//   ids           {"results":[{"id":...,"status":200}]} for what became of each

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bide/broker.h"
#include "bide/inspector.h"
#include "wire/fields.h"
#include "wire/json_writer.h"

namespace bide::wire {

template <>
std::span<const Field<QueueInfo>> rows_of<QueueInfo>();
template <>
std::span<const Field<JobPage>> rows_of<JobPage>();
template <>
std::span<const Field<Explanation>> rows_of<Explanation>();
template <>
std::span<const Field<AuditReport>> rows_of<AuditReport>();
template <>
std::span<const Field<Pressure>> rows_of<Pressure>();
template <>
std::span<const Field<Capabilities>> rows_of<Capabilities>();

inline void write(JsonWriter& out, const JobInfo& info) { write_value(out, info); }
inline void write(JsonWriter& out, const QueueInfo& info) { write_value(out, info); }

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
