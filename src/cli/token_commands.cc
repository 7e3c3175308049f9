// bide token: who may ask a server for what.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/invocation.h"
#include "cli/jobs.h"
#include "cli/open_client.h"
#include "cli/output.h"
#include "core/did_you_mean.h"
#include "core/job_rules.h"
#include "core/quote.h"
#include "platform/disk.h"
#include "server/auth/token_file.h"
#include "server/http/identity.h"

namespace bide::cli {

namespace {

using server::Token;
using server::TokenList;

constexpr Flag kFileFlag = {"--token-file", "FILE", "where the tokens are; default: `tokens` in the data directory"};

std::string file_of(const Invocation& call) {
  if (const auto file = call.value(kFileFlag.name)) return *file;
  const std::string url = url_of(call);
  if (const auto file = server::token_file_of(url)) return *file;
  const bool is_remote = url.starts_with("http:") || url.starts_with("https:");
  fail_usage(
      is_remote
          ? "tokens are made where the server runs, in its token file: log in there, or name the file with --token-file"
          : "this broker has no data directory: name the file for the tokens with --token-file");
}

// The first token may be made before the first job.
void make_data_directory(const Invocation& call, const std::string& file) {
  if (!call.has(kFileFlag.name)) take(platform::real_disk().make_directory(file.substr(0, file.rfind('/'))));
}

void require_data_directory(const Invocation& call, const std::string& file) {
  if (call.has(kFileFlag.name)) return;
  const std::string directory = file.substr(0, file.rfind('/'));
  const auto exists = platform::real_disk().exists(directory);
  if (!exists || *exists) return;  // What else is wrong is said by whoever reads the file.
  throw Failure{kNotThere, "there is no data directory " + core::quoted(directory) +
                               "; `bide token create` makes it, --url or BIDE_URL names another"};
}

std::uint8_t scopes_of(const Invocation& call) {
  if (!call.has("--scope")) fail_usage("--scope is missing; allowed are read, write, work and admin, joined by commas");
  std::uint8_t scopes = 0;
  for (const std::string& text : call.values("--scope")) {
    const Result<std::uint8_t> some = server::parse_scopes(text);
    if (!some) fail_usage("--scope: " + some.error().message);
    scopes = static_cast<std::uint8_t>(scopes | *some);
  }
  return scopes;
}

// In so long, or at a time.
std::optional<Time> expiry_of(const Invocation& call) {
  const auto text = call.value("--expires");
  if (!text || *text == "never") return std::nullopt;
  const bool is_time = text->find('T') != std::string::npos || text->find('-') != std::string::npos;
  const Time expires = is_time ? *call.time("--expires") : now() + *call.duration("--expires");
  if (expires <= now()) fail_usage("--expires " + core::quoted(*text) + " is not in the future");
  return expires;
}

std::vector<std::string> token_queues(const Invocation& call) {
  for (const std::string& queue : call.values("--queue")) {
    if (!core::is_name(queue)) fail_usage("--queue: " + core::quoted(queue) + " is not a valid name");
  }
  return call.values("--queue");
}

std::string queues_text(const Token& token) {
  std::string text;
  for (const std::string& queue : token.queues) text += (text.empty() ? "" : ", ") + queue;
  return text;
}

JsonObject token_json(const Token& token) {
  JsonArray scopes;
  for (const server::Scope scope :
       {server::Scope::kRead, server::Scope::kWrite, server::Scope::kWork, server::Scope::kAdmin}) {
    if (server::Identity{.scopes = token.scopes}.may(scope)) scopes.add(server::to_string(scope));
  }
  return JsonObject()
      .add("name", token.name)
      .add("scopes", scopes)
      .add("created", token.created)
      .add("expires", token.expires)
      .add("queues", JsonArray(token.queues))
      .add("state", token.is_good_at(now()) ? "good" : "expired");
}

int create_token(const Invocation& call) {
  const std::string name = call.argument(0);
  if (!core::is_name(name)) {
    fail_usage("NAME: invalid name " + core::quoted(name) +
               " for a token" + std::string(core::kNameRule));
  }
  const std::string file = file_of(call);
  const std::string secret = server::make_token_secret();
  const Token token = {.name = name,
                       .scopes = scopes_of(call),
                       .created = now(),
                       .expires = expiry_of(call),
                       .digest = server::digest_of(secret),
                       .queues = token_queues(call)};
  const auto add = [&](TokenList& tokens) -> Status {
    // An expired token of the same name gives way; a good one must be revoked by intent.
    std::erase_if(tokens, [&](const Token& other) { return other.name == name && !other.is_good_at(now()); });
    if (std::any_of(tokens.begin(), tokens.end(), [&](const Token& other) { return other.name == name; })) {
      return Error{ErrorCode::kAlreadyExists,
                   "there is a token " + core::quoted(name) + " already; revoke it first: bide token revoke " + name};
    }
    if (tokens.size() >= server::kMostTokens) {
      return Error{ErrorCode::kInvalidArgument, "there are 1000 tokens, which is as many as there may be; revoke some"};
    }
    tokens.push_back(token);
    return {};
  };
  make_data_directory(call, file);
  take(server::change_tokens(file, add));
  if (call.json()) {
    print(token_json(token).add("token", secret).add("file", file));
  } else {
    // Alone on stdout, so that it can be caught: TOKEN=$(bide token create ...)
    std::puts(secret.c_str());
    tell("token " + name + " (" + server::scopes_text(token.scopes) +
         (token.queues.empty() ? "" : "; only queues " + queues_text(token)) + ") was added to " + file +
         "; it is shown this once and kept as a hash only");
  }
  return kOk;
}

int list_tokens(const Invocation& call) {
  const std::string file = file_of(call);
  require_data_directory(call, file);
  const TokenList tokens = take(server::read_tokens(file));
  if (call.json()) {
    const JsonArray array(tokens, [](const Token& token) { return token_json(token); });
    print(JsonObject().add("tokens", array));
    return kOk;
  }
  if (tokens.empty()) {
    say("no tokens in " + file);
    return kOk;
  }
  Table table({"name", "scopes", "queues", "created", "expires", ""});
  for (const Token& token : tokens) {
    table.row({token.name, server::scopes_text(token.scopes), token.queues.empty() ? "all" : queues_text(token),
               relative_time(token.created, now()),
               token.expires ? relative_time(*token.expires, now()) : "never",
               token.is_good_at(now()) ? "" : "expired"});
  }
  print(table.text());
  return kOk;
}

int revoke_tokens(const Invocation& call) {
  const std::string file = file_of(call);
  // All of them or none, so that a mistyped name is no half-done work.
  const auto remove = [&](TokenList& tokens) -> Status {
    for (const std::string& name : call.arguments()) {
      if (std::erase_if(tokens, [&](const Token& token) { return token.name == name; }) > 0) continue;
      std::vector<std::string_view> names;
      for (const Token& token : tokens) names.push_back(token.name);
      return Error{ErrorCode::kNotFound, "there is no token " + core::quoted(name) + core::did_you_mean(name, names) +
                                             "; nothing was revoked"};
    }
    return {};
  };
  take(server::change_tokens(file, remove));
  if (call.json()) print(JsonObject().add("revoked", JsonArray(call.arguments())));
  for (const std::string& name : call.arguments()) {
    if (!call.json()) say("token " + name + " is revoked; a running server knows within a second");
  }
  return kOk;
}

}  // namespace

std::vector<Command> token_commands() {
  return {
      {.path = "token create",
       .summary = "Make a token for `bide serve`, and print it this once",
       .details =
           "The scopes are read (look at jobs and queues, metrics), write (enqueue, cancel, reschedule), work (lease "
           "and "
           "settle) and admin (pause, purge, replay, delete). Each is separate. A server that is running knows the "
           "token within a second. Only the SHA-256 of it is kept, in a file that nobody but its owner may read.",
       .arguments = {{"NAME", "whose it is: shown by `bide token list` and in the log"}},
       .flags = {{"--scope", "SCOPES", "read, write, work or admin, joined by commas; may be given several times",
                  true},
                 {"--queue", "NAME", "only for this queue; may be given several times; default: all", true},
                 {"--expires", "WHEN", "in so long (90d) or at a time; default: never"},
                 kFileFlag,
                 kUrlFlag,
                 kJsonFlag},
       .run = create_token},
      {.path = "token list",
       .summary = "List the tokens, their scopes and when they expire",
       .flags = {kFileFlag, kUrlFlag, kJsonFlag},
       .run = list_tokens},
      {.path = "token revoke",
       .summary = "Make tokens worthless",
       .arguments = {{"NAME", "of the token", false, true}},
       .flags = {kFileFlag, kUrlFlag, kJsonFlag},
       .run = revoke_tokens},
  };
}

}  // namespace bide::cli
