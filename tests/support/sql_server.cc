#include "support/sql_server.h"

#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/child_process.h"

namespace bide::support {
namespace {

constexpr char kPostgresFolder[] = "/usr/lib/postgresql/15/bin/";
constexpr char kMariadb[] = "/usr/sbin/mariadbd";
constexpr char kMariadbInstall[] = "/usr/bin/mariadb-install-db";
constexpr std::chrono::seconds kSqlStartAtMost{60};
constexpr std::chrono::seconds kSqlAnswerAtMost{60};

Ended must_run(std::vector<std::string> arguments, std::vector<std::string> environment) {
  const std::string name = arguments.front();
  Ended ended = run({.arguments = std::move(arguments), .environment = std::move(environment)}, "", kSqlAnswerAtMost);
  if (!ended.succeeded()) throw std::runtime_error(name + ": " + ended.output);
  return ended;
}

std::string trimmed_end(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

SqlServer::SqlServer(std::string scheme, std::string user)
    : scheme_(std::move(scheme)), user_(geteuid() == 0 ? std::move(user) : std::string()), port_(free_port()) {
  if (user_.empty()) return;
  const passwd* const entry = getpwnam(user_.c_str());
  if (entry == nullptr) throw std::runtime_error("there is no user " + user_);
  if (chown(directory_.path().c_str(), entry->pw_uid, entry->pw_gid) != 0) throw std::runtime_error("cannot give the folder to " + user_);
}

SqlServer::~SqlServer() { kill(); }

std::string SqlServer::url_at(std::uint16_t port, const std::string& options) const {
  return scheme_ + "://bide@127.0.0.1:" + std::to_string(port) + "/bide" + (options.empty() ? "" : "?" + options);
}

std::vector<std::string> SqlServer::as_user(std::vector<std::string> arguments) const {
  if (user_.empty()) return arguments;
  std::vector<std::string> all = {"/usr/bin/setpriv", "--reuid=" + user_, "--regid=" + user_, "--clear-groups"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::vector<std::string> SqlServer::environment() const {
  return {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", ServerKeeper::mark(directory_.path())};
}

void SqlServer::start() {
  if (process_ <= 0) launch();
}

void SqlServer::stop() {
  if (process_ <= 0) return;
  ::kill(process_, SIGINT);  // PostgreSQL: without waiting for clients.
  ::kill(process_, SIGTERM);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

std::vector<pid_t> SqlServer::processes() const {
  std::vector<pid_t> all = {process_};
  std::ifstream children("/proc/" + std::to_string(process_) + "/task/" + std::to_string(process_) + "/children");
  for (pid_t child = 0; children >> child;) all.push_back(child);
  return all;
}

void SqlServer::pause() {
  ::kill(process_, SIGSTOP);  // First the one that would start others.
  paused_ = processes();
  for (const pid_t process : paused_) ::kill(process, SIGSTOP);
}

void SqlServer::resume() {
  for (const pid_t process : std::exchange(paused_, {})) ::kill(process, SIGCONT);
}

void SqlServer::kill() {
  if (process_ <= 0) return;
  // First the one that would start others.
  const std::vector<pid_t> all = processes();
  for (const pid_t process : all) ::kill(process, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
  for (const pid_t process : all) {
    while (::kill(process, 0) == 0 && access(("/proc/" + std::to_string(process) + "/cwd").c_str(), F_OK) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void SqlServer::launch() {
  process_ = spawn({.arguments = as_user(command()),
                    .environment = environment(),
                    .directory = directory_.path(),
                    .output = directory_.path() + "/log"});
  const auto deadline = std::chrono::steady_clock::now() + kSqlStartAtMost;
  while (true) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) {
      process_ = -1;
      std::ifstream log(directory_.path() + "/log");
      throw std::runtime_error("the database server ended while it started: " + std::string{std::istreambuf_iterator<char>(log), {}});
    }
    try {
      ask("SELECT 1");
      return;
    } catch (const std::runtime_error&) {
      // Not there yet.
    }
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("the database server does not start");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

bool PostgresServer::is_installed() { return access((std::string(kPostgresFolder) + "initdb").c_str(), X_OK) == 0; }

PostgresServer::PostgresServer(std::vector<std::string> settings) : SqlServer("postgres", "postgres"), settings_(std::move(settings)) {
  must_run(as_user({std::string(kPostgresFolder) + "initdb", "-D", directory() + "/data", "-U", "bide", "-A", "trust", "-E", "UTF8",
                    "--locale=C", "--no-sync"}),
           environment());
  start();
  if (ask("SELECT count(*) FROM pg_database WHERE datname = 'bide'") == "0") ask("CREATE DATABASE bide");
}

std::vector<std::string> PostgresServer::command() const {
  std::vector<std::string> arguments = {std::string(kPostgresFolder) + "postgres", "-D", directory() + "/data", "-p",
                                        std::to_string(port()), "-c", "listen_addresses=127.0.0.1", "-c",
                                        "unix_socket_directories=" + directory()};
  for (const std::string& setting : settings_) arguments.insert(arguments.end(), {"-c", setting});
  return arguments;
}

std::string PostgresServer::ask(const std::string& statement) {
  const std::string database = statement.find("DATABASE") != std::string::npos || statement.find("pg_database") != std::string::npos ||
                                       statement == "SELECT 1"
                                   ? "postgres"
                                   : "bide";
  return trimmed_end(must_run({std::string(kPostgresFolder) + "psql", "-h", "127.0.0.1", "-p", std::to_string(port()), "-U", "bide",
                               "-d", database, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement},
                              environment())
                         .output);
}

bool MariadbServer::is_installed() { return access(kMariadb, X_OK) == 0 && access(kMariadbInstall, X_OK) == 0; }

MariadbServer::MariadbServer(std::vector<std::string> settings) : SqlServer("mysql", "mysql"), settings_(std::move(settings)) {
  must_run(as_user({kMariadbInstall, "--no-defaults", "--datadir=" + directory() + "/data", "--auth-root-authentication-method=normal",
                    "--skip-test-db"}),
           environment());
  start();
  ask("CREATE DATABASE IF NOT EXISTS bide; CREATE USER IF NOT EXISTS bide@'127.0.0.1'; GRANT ALL ON bide.* TO bide@'127.0.0.1'");
}

std::vector<std::string> MariadbServer::command() const {
  std::vector<std::string> arguments = {kMariadb, "--no-defaults", "--datadir=" + directory() + "/data",
                                        "--port=" + std::to_string(port()), "--bind-address=127.0.0.1",
                                        "--socket=" + directory() + "/socket", "--pid-file=" + directory() + "/pid",
                                        "--skip-name-resolve", "--max-allowed-packet=64M", "--innodb-flush-log-at-trx-commit=1"};
  for (const std::string& setting : settings_) arguments.push_back("--" + setting);
  return arguments;
}

std::string MariadbServer::ask(const std::string& statement) {
  return trimmed_end(must_run({"/usr/bin/mariadb", "--no-defaults", "-u", "root", "-S", directory() + "/socket", "-N", "-B", "-e", statement},
                              environment())
                         .output);
}

}  // namespace bide::support
