#include "support/rabbitmq_server.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/child_process.h"

namespace bide::support {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The real script, in BIDE_RABBITMQ_SBIN where another version is installed: the one in the PATH insists on another user.
std::string server_script() {
  const char* const folder = std::getenv("BIDE_RABBITMQ_SBIN");
  return std::string(folder == nullptr || *folder == '\0' ? "/usr/lib/rabbitmq/bin" : folder) + "/rabbitmq-server";
}
constexpr char kEpmd[] = "/usr/bin/epmd";
// Asks a node directly: a hundredth of what rabbitmqctl costs, which starts a virtual machine for each question.
constexpr char kErlCall[] = "/usr/bin/erl_call";

// Four to seven seconds where the machine has nothing else to do.
constexpr std::chrono::seconds kBootAtMost{240};
constexpr std::chrono::seconds kStopAtMost{60};
constexpr std::chrono::seconds kAnswerAtMost{60};
constexpr milliseconds kPoll{50};

void write_file(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  if (chmod(path.c_str(), mode) != 0) throw std::runtime_error("cannot write " + path);
}

std::string end_of(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.size() > 3000 ? text.substr(text.size() - 3000) : text;
}

}  // namespace

bool RabbitmqServer::is_installed() {
  return access(server_script().c_str(), X_OK) == 0 && access(kErlCall, X_OK) == 0 && access(kEpmd, X_OK) == 0;
}

RabbitmqServer::RabbitmqServer(int nodes) : nodes_(static_cast<std::size_t>(nodes)) {
  if (!is_installed()) throw std::runtime_error("rabbitmq-server is not installed");
  std::random_device random;
  cookie_ = "cookie" + std::to_string(random()) + std::to_string(random());
  epmd_port_ = free_port();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    node.name = "node" + std::to_string(i + 1) + "@localhost";
    node.directory = directory_.path() + "/node" + std::to_string(i + 1);
    node.port = free_port();
    node.distribution_port = free_port();
    std::filesystem::create_directory(node.directory);
  }
  write_configuration();
  keeper_.emplace(directory_.path());
  start_epmd();
  try {
    // The first alone, so that the others find a cluster to join.
    launch(nodes_.front());
    await(nodes_.front());
    for (std::size_t i = 1; i < nodes_.size(); ++i) launch(nodes_[i]);
    for (std::size_t i = 1; i < nodes_.size(); ++i) await(nodes_[i]);
  } catch (...) {
    for (Node& node : nodes_) reap(node);
    ::kill(epmd_, SIGKILL);
    waitpid(epmd_, nullptr, 0);
    throw;
  }
}

RabbitmqServer::~RabbitmqServer() {
  for (Node& node : nodes_) reap(node);
  ::kill(epmd_, SIGKILL);
  waitpid(epmd_, nullptr, 0);
}

std::uint16_t RabbitmqServer::port(int node) const { return nodes_.at(static_cast<std::size_t>(node)).port; }

std::string RabbitmqServer::url(int node) const {
  return "amqp://guest:guest@127.0.0.1:" + std::to_string(port(node));
}

bool RabbitmqServer::is_alive(int node) const { return nodes_.at(static_cast<std::size_t>(node)).process > 0; }

void RabbitmqServer::start(int node) {
  Node& which = nodes_.at(static_cast<std::size_t>(node));
  if (which.process > 0) return;
  launch(which);
  await(which);
}

void RabbitmqServer::stop(int node) {
  Node& which = nodes_.at(static_cast<std::size_t>(node));
  if (which.process <= 0) return;
  ::kill(which.process, SIGTERM);
  const auto deadline = steady_clock::now() + kStopAtMost;
  while (waitpid(which.process, nullptr, WNOHANG) == 0) {
    if (steady_clock::now() > deadline) throw std::runtime_error(which.name + " does not stop");
    std::this_thread::sleep_for(kPoll);
  }
  which.process = -1;
}

void RabbitmqServer::kill(int node) { reap(nodes_.at(static_cast<std::size_t>(node))); }

void RabbitmqServer::pause(int node) { ::kill(nodes_.at(static_cast<std::size_t>(node)).process, SIGSTOP); }

void RabbitmqServer::resume(int node) { ::kill(nodes_.at(static_cast<std::size_t>(node)).process, SIGCONT); }

std::string RabbitmqServer::evaluate(const std::string& expressions, int node) {
  for (int i = 0; node < 0 && i < size(); ++i) {
    if (is_alive(i)) node = i;
  }
  if (node < 0) throw std::runtime_error("no node is alive");
  const Node& which = nodes_.at(static_cast<std::size_t>(node));
  const Program program{
      .arguments = {kErlCall, "-n", which.name, "-c", cookie_, "-fetch_stdout", "-e"}, .environment = environment()};
  const std::string input = "begin " + expressions + " end, ok.\n";
  Ended ended = run(program, input, kAnswerAtMost);
  // A node that is busy does not always take the connection.
  for (int again = 0; again < 5 && ended.output.find("failed to connect") != std::string::npos && is_alive(node); ++again) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ended = run(program, input, kAnswerAtMost);
  }
  const std::string good = "{ok, ok}";
  const auto result = ended.output.rfind(good);
  if (!ended.succeeded() || result == std::string::npos || result + good.size() != ended.output.size()) {
    throw std::runtime_error(which.name + " did not do " + expressions + ": " + ended.output);
  }
  return ended.output.substr(0, result);
}

// A queue may go while we look. Quorum queues are asked themselves: what the server shows of them is up to five seconds old.
std::vector<RabbitmqQueue> RabbitmqServer::queues() {
  std::istringstream lines(evaluate(R"(lists:foreach(fun(Q) ->
      {resource, _, queue, Name} = amqqueue:get_name(Q),
      Type = case amqqueue:get_type(Q) of rabbit_classic_queue -> classic; rabbit_quorum_queue -> quorum; T -> T end,
      Leader = case amqqueue:get_pid(Q) of
        {Cluster, Node} -> case ra_leaderboard:lookup_leader(Cluster) of {_, N} -> N; _ -> Node end;
        Pid -> node(Pid) end,
      Info = case catch rabbit_amqqueue:info(Q, [messages, consumers]) of Known when is_list(Known) -> Known; _ -> [] end,
      Number = fun(Key) -> case proplists:get_value(Key, Info, 0) of V when is_integer(V) -> V; _ -> 0 end end,
      Messages = case Type == quorum andalso
                      (catch ra:leader_query(amqqueue:get_pid(Q), fun rabbit_fifo:query_messages_total/1, 1000)) of
        {ok, {_, Total}, _} when is_integer(Total) -> Total;
        _ -> Number(messages) end,
      Info == [] orelse
        io:format("~ts ~p ~p ~p ~p~n", [Name, Type, Messages, Number(consumers), Leader])
    end, rabbit_amqqueue:list()))"));
  std::vector<RabbitmqQueue> all;
  RabbitmqQueue queue;
  std::string leader;
  while (lines >> queue.name >> queue.type >> queue.messages >> queue.consumers >> leader) {
    queue.leader = -1;
    for (int i = 0; i < size(); ++i) {
      const std::string& name = nodes_[static_cast<std::size_t>(i)].name;
      if (is_alive(i) && (leader == name || leader == "'" + name + "'")) queue.leader = i;
    }
    all.push_back(queue);
  }
  return all;
}

int RabbitmqServer::leader_of(const std::string& queue) {
  for (const RabbitmqQueue& one : queues()) {
    if (one.name == queue) return one.leader;
  }
  throw std::runtime_error("there is no queue " + queue);
}

void RabbitmqServer::delete_queue(const std::string& queue) {
  evaluate("{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"" + queue +
           "\">>)), {ok, _} = rabbit_amqqueue:delete(Q, false, false, <<\"test\">>)");
}

void RabbitmqServer::forget(const std::string& prefix) {
  evaluate("Begins = fun({resource, _, _, Name}) -> string:prefix(Name, <<\"" + prefix + R"(">>) =/= nomatch end,
    [rabbit_amqqueue:delete(Q, false, false, <<"test">>) ||
      Q <- rabbit_amqqueue:list(), Begins(amqqueue:get_name(Q))],
    [rabbit_exchange:delete(element(2, X), false, <<"test">>) ||
      X <- rabbit_exchange:list(), Begins(element(2, X))])");
}

void RabbitmqServer::set_memory_alarm(bool on) {
  for (int i = 0; i < size(); ++i) {
    if (!is_alive(i)) continue;
    evaluate(std::string("vm_memory_monitor:set_vm_memory_high_watermark(") + (on ? "0.00001" : "0.4") + ")", i);
  }
}

void RabbitmqServer::write_configuration() {
  const std::string& path = directory_.path();
  write_file(path + "/.erlang.cookie", cookie_, 0400);
  write_file(path + "/enabled_plugins", "[].\n");
  std::string settings = "loopback_users.guest = true\ndisk_free_limit.absolute = 50MB\n";
  if (nodes_.size() > 1) {
    settings += "cluster_partition_handling = pause_minority\n";
    settings += "cluster_formation.peer_discovery_backend = classic_config\n";
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      settings += "cluster_formation.classic_config.nodes." + std::to_string(i + 1) + " = " + nodes_[i].name + "\n";
    }
  }
  write_file(path + "/rabbitmq.conf", settings);
  write_file(path + "/advanced.config", "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 3000}]}].\n");
}

void RabbitmqServer::start_epmd() {
  // By ourselves: otherwise the first node would, and would leave it behind.
  epmd_ = spawn({.arguments = {kEpmd, "-address", "127.0.0.1", "-port", std::to_string(epmd_port_)},
                 .environment = environment(),
                 .output = directory_.path() + "/epmd.log"});
}

void RabbitmqServer::launch(Node& node) {
  std::filesystem::remove(node.directory + "/pid");
  node.process = spawn({.arguments = {server_script()},
                        .environment = environment(node),
                        .directory = node.directory,
                        .output = node.directory + "/output"});
}

void RabbitmqServer::await(Node& node) {
  const auto deadline = steady_clock::now() + kBootAtMost;
  const auto index = static_cast<int>(&node - nodes_.data());
  const auto fail = [&](const std::string& what) {
    throw std::runtime_error(node.name + " " + what + ":\n" + end_of(node.directory + "/output") +
                             end_of(node.directory + "/log/" + node.name + ".log"));
  };
  std::string last;
  for (;;) {
    if (waitpid(node.process, nullptr, WNOHANG) != 0) {
      node.process = -1;
      fail("ended while it started");
    }
    try {
      last = evaluate("io:format(\"~p\", [rabbit:is_running()])", index);
      if (last == "true") return;
    } catch (const std::runtime_error& not_yet) {
      last = not_yet.what();
    }
    if (steady_clock::now() > deadline) fail("does not start (" + last + ")");
    std::this_thread::sleep_for(kPoll);
  }
}

void RabbitmqServer::reap(Node& node) {
  if (node.process <= 0) return;
  ::kill(node.process, SIGKILL);
  waitpid(node.process, nullptr, 0);
  node.process = -1;
}

std::vector<std::string> RabbitmqServer::environment() const {
  return {"PATH=/usr/bin:/bin",
          "LANG=C.UTF-8",
          "HOME=" + directory_.path(),
          ServerKeeper::mark(directory_.path()),
          "ERL_EPMD_ADDRESS=127.0.0.1",
          "ERL_EPMD_PORT=" + std::to_string(epmd_port_)};
}

std::vector<std::string> RabbitmqServer::environment(const Node& node) const {
  std::vector<std::string> all = environment();
  const std::string& path = directory_.path();
  // Makes the script become the server instead of its parent, so that our signals reach it.
  all.push_back("RUNNING_UNDER_SYSTEMD=true");
  all.push_back("RABBITMQ_NODENAME=" + node.name);
  all.push_back("RABBITMQ_NODE_IP_ADDRESS=127.0.0.1");
  all.push_back("RABBITMQ_NODE_PORT=" + std::to_string(node.port));
  all.push_back("RABBITMQ_DIST_PORT=" + std::to_string(node.distribution_port));
  all.push_back("RABBITMQ_MNESIA_BASE=" + node.directory + "/mnesia");
  all.push_back("RABBITMQ_LOG_BASE=" + node.directory + "/log");
  all.push_back("RABBITMQ_PID_FILE=" + node.directory + "/pid");
  all.push_back("RABBITMQ_CONF_ENV_FILE=" + path + "/no-such-file");
  all.push_back("RABBITMQ_ENABLED_PLUGINS_FILE=" + path + "/enabled_plugins");
  all.push_back("RABBITMQ_CONFIG_FILE=" + path + "/rabbitmq.conf");
  all.push_back("RABBITMQ_ADVANCED_CONFIG_FILE=" + path + "/advanced.config");
  all.push_back("ERL_CRASH_DUMP=" + node.directory + "/crash_dump");
  // Schedulers that spin while they wait would take the processors from the test.
  all.push_back(
      "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} "
      "+sbwt none +sbwtdcpu none +sbwtdio none");
  return all;
}

}  // namespace bide::support
