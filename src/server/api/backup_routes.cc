// POST /v1/backup: a copy of the store, made beside its work. GET /v1/backup: how it goes.

#include <string>
#include <utility>

#include "core/job_rules.h"
#include "core/quote.h"
#include "server/api/api_state.h"
#include "wire/backup_json.h"

namespace bide::server {

namespace {

// What is there is shown by its name alone: where the server keeps its backups is not for everybody.
BackupInfo as_told(BackupInfo info) {
  info.target = info.target.substr(info.target.find_last_of('/') + 1);
  return info;
}

void show_backup(const State& state, const Request&, Reply reply) {
  state->inspector->backup_info(answer_with<BackupInfo>(
      state, share(std::move(reply)), [](const BackupInfo& info) { return wire::backup_json(as_told(info)); }));
}

void begin_backup(const State& state, const Request& request, Reply reply) {
  std::string target;
  if (const auto problem = wire::read_backup_request(request.body, target)) return refuse(reply, *problem);
  if (state->options.backup_directory.empty()) {
    return refuse(reply, wire::make_problem("unsupported",
                                            "this server has no directory for backups: set backup_directory, or make them with "
                                            "`bide store backup` where it runs"));
  }
  if (!core::is_name(target)) {
    return refuse(reply, wire::make_problem("invalid_argument",
                                            "target: a name of letters, digits and . _ - that does not begin with a dot, not " +
                                                core::quoted(target),
                                            "target"));
  }
  const auto shared = share(std::move(reply));
  state->inspector->backup(state->options.backup_directory + "/" + target, [state, shared](const Status& begun) {
    if (!begun) return refuse(*shared, state->problem_of(begun.error()));
    state->inspector->backup_info([state, shared](const Result<BackupInfo>& info) {
      if (!info) return refuse(*shared, state->problem_of(info.error()));
      shared->send(json_response(202, wire::backup_json(as_told(*info))));
    });
  });
}

}  // namespace

void add_backup_routes(const State& state, Routes& routes) {
  add_route(state, routes,
            {.method = Method::kPost, .pattern = "/v1/backup", .scope = Scope::kAdmin,
             .summary = "Begin a copy of the store, beside its work", .body_bytes = kSmallBody,
             .operation = {.id = "beginBackup", .request = "BackupRequest", .answers = {{202, "Backup"}}}},
            &begin_backup, {.inspector = true});
  add_route(state, routes,
            {.pattern = "/v1/backup", .scope = Scope::kAdmin, .summary = "How the backup goes, or how the last one went",
             .operation = {.id = "getBackup", .answers = {{200, "Backup"}}}},
            &show_backup, {.inspector = true});
}

}  // namespace bide::server
