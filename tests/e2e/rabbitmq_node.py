"""A RabbitMQ of one node for a test: private ports on loopback, its own folder and cookie, ended by process id."""

import os
import random
import signal
import subprocess
import tempfile
import time

from running_server import free_port

# The real script, in BIDE_RABBITMQ_SBIN where another version is installed: the one in the PATH insists on another user.
SERVER = os.path.join(os.environ.get("BIDE_RABBITMQ_SBIN") or "/usr/lib/rabbitmq/bin", "rabbitmq-server")
EPMD = "/usr/bin/epmd"
ERL_CALL = "/usr/bin/erl_call"
BOOT_AT_MOST = 240


def is_installed():
    return all(os.access(program, os.X_OK) for program in (SERVER, EPMD, ERL_CALL))


class RabbitmqNode:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="bide-rabbitmq-", ignore_cleanup_errors=True)
        self._processes = []
        self._cookie = f"cookie{random.getrandbits(64)}"
        self._epmd_port = free_port()
        self.port = free_port()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self):
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    def stop(self):
        for process in reversed(self._processes):
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._processes.clear()
        self._folder.cleanup()

    def evaluate(self, expressions):
        """Runs Erlang expressions in the node and returns what they print."""
        for left in range(10, -1, -1):
            result = subprocess.run(
                [ERL_CALL, "-n", "node@localhost", "-c", self._cookie, "-fetch_stdout", "-e"],
                input=f"begin {expressions} end, ok.\n", capture_output=True, text=True, timeout=60, check=False,
                env=self._environment())
            # A node that is busy does not always take the connection.
            if left == 0 or "failed to connect" not in result.stdout + result.stderr:
                break
            time.sleep(1)
        good = "{ok, ok}"
        if result.returncode != 0 or not result.stdout.endswith(good):
            raise RuntimeError(f"{expressions}: {result.stdout}{result.stderr}")
        return result.stdout[:-len(good)]

    def queues(self):
        """Messages by the name of the queue, ready or not."""
        lines = self.evaluate(r"""lists:foreach(fun(Q) ->
            {resource, _, queue, Name} = amqqueue:get_name(Q),
            case catch rabbit_amqqueue:info(Q, [messages]) of
                [{messages, N}] -> io:format("~ts ~p~n", [Name, N]);
                _ -> gone end end, rabbit_amqqueue:list())""").splitlines()
        return {name: int(messages) if messages.isdigit() else 0
                for name, messages in (line.rsplit(" ", 1) for line in lines)}

    def delete_queue(self, name):
        self.evaluate(f'{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"{name}">>)), '
                      '{ok, _} = rabbit_amqqueue:delete(Q, false, false, <<"test">>)')

    def declare_queue(self, name, arguments, durable=True):
        """`arguments` maps names to texts or numbers."""
        terms = ", ".join(
            f'{{<<"{key}">>, longstr, <<"{value}">>}}' if isinstance(value, str) else f'{{<<"{key}">>, long, {value}}}'
            for key, value in arguments.items())
        self.evaluate(f'{{new, _}} = rabbit_amqqueue:declare(rabbit_misc:r(<<"/">>, queue, <<"{name}">>), '
                      f'{str(durable).lower()}, false, [{terms}], none, <<"test">>)')

    def set_consumer_timeout(self, milliseconds):
        """The server looks at it twice a second while it is short."""
        self.evaluate(f"application:set_env(rabbit, consumer_timeout, {milliseconds}), "
                      f"application:set_env(rabbit, channel_tick_interval, {500 if milliseconds < 60000 else 60000})")

    def set_memory_alarm(self, on):
        self.evaluate(f"vm_memory_monitor:set_vm_memory_high_watermark({'0.00001' if on else '0.4'})")

    def listen_with_tls(self, port, certificate, key):
        """Another listener; it goes with the node."""
        self.evaluate('{ok, _} = application:ensure_all_started(ssl), '
                      f'rabbit_networking:start_ssl_listener({{"127.0.0.1", {port}, inet}}, '
                      f'[{{certfile, "{certificate}"}}, {{keyfile, "{key}"}}], 2)')

    def forget(self, prefix):
        """Deletes every queue and exchange whose name begins so."""
        self.evaluate(f'Begins = fun({{resource, _, _, Name}}) -> string:prefix(Name, <<"{prefix}">>) =/= nomatch end, '
                      '[rabbit_amqqueue:delete(Q, false, false, <<"test">>) || '
                      'Q <- rabbit_amqqueue:list(), Begins(amqqueue:get_name(Q))], '
                      '[rabbit_exchange:delete(element(2, X), false, <<"test">>) || '
                      'X <- rabbit_exchange:list(), Begins(element(2, X))]')

    def _write(self, name, text, mode=0o600):
        path = os.path.join(self._folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def _environment(self):
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": self._folder.name,
                "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(self._epmd_port)}

    def _start(self):
        folder = self._folder.name
        self._write(".erlang.cookie", self._cookie, 0o400)
        self._write("advanced.config", "[{rabbit, [{dead_letter_worker_publisher_confirm_timeout, 3000}]}].\n")
        output = open(os.path.join(folder, "output"), "wb")
        # By ourselves: otherwise the node would, and would leave it behind.
        self._processes.append(subprocess.Popen([EPMD, "-address", "127.0.0.1", "-port", str(self._epmd_port)],
                                                env=self._environment(), stdout=output, stderr=output))
        environment = self._environment() | {
            # Makes the script become the server instead of its parent, so that our signals reach it.
            "RUNNING_UNDER_SYSTEMD": "true",
            "RABBITMQ_NODENAME": "node@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": folder + "/mnesia",
            "RABBITMQ_LOG_BASE": folder + "/log",
            "RABBITMQ_PID_FILE": folder + "/pid",
            "RABBITMQ_CONF_ENV_FILE": folder + "/no-such-file",
            "RABBITMQ_ENABLED_PLUGINS_FILE": self._write("enabled_plugins", "[].\n"),
            "RABBITMQ_CONFIG_FILE": self._write(
                "rabbitmq.conf", "loopback_users.guest = true\ndisk_free_limit.absolute = 50MB\n"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": folder + "/advanced.config",
            "ERL_CRASH_DUMP": folder + "/crash_dump",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none",
        }
        server = subprocess.Popen([SERVER], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                                  stderr=output, start_new_session=True)
        output.close()
        self._processes.append(server)
        deadline = time.monotonic() + BOOT_AT_MOST
        while True:
            if server.poll() is not None:
                raise RuntimeError("rabbitmq-server ended while it started:\n" + self._end_of_log())
            try:
                if self.evaluate('io:format("~p", [rabbit:is_running()])') == "true":
                    return
            except RuntimeError:
                pass  # Not there yet.
            if time.monotonic() > deadline:
                raise RuntimeError("rabbitmq-server does not start:\n" + self._end_of_log())
            time.sleep(0.1)

    def _end_of_log(self):
        with open(os.path.join(self._folder.name, "output"), encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]
