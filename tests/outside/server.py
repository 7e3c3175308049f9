"""A bide server as a process: started on data of its own, stopped, killed, started again on the same data."""

import os
import random
import signal
import socket
import subprocess
import time

import wire
from record import now

PORTS = range(27000, 28000)  # Below the range from which the system takes ports of outgoing connections.


_reserved = []  # A UDP socket of the same number keeps a port for us while no server listens there.


def free_port():
    for _ in range(1000):
        port = random.choice(PORTS)
        keep = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            keep.bind(("127.0.0.1", port))
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
            _reserved.append(keep)
            return port
        except OSError:
            keep.close()
    raise RuntimeError("no free port from 27000 to 27999")


class Server:
    """`limits`, `callbacks`: sections of the configuration file. Data lies in `folder`/data unless `data` says otherwise."""

    def __init__(self, bide, folder, record, limits=None, callbacks=None, tls=False, data=None, durability=None,
                 tokens=False):
        self.bide, self.folder, self.record = bide, folder, record
        # A client of ours that gets no processor for a while is not a slow client.
        self.limits = {"transfer_timeout": '"10m"', "head_timeout": '"2m"', "idle_timeout": '"10m"'} | (limits or {})
        self.callbacks, self.tls = callbacks, tls
        self.tokens, self.headers = tokens, {}
        self.data = data or os.path.join(folder, "data")
        self.url = f"bide:{self.data}?result_retention=2d&done_limit=5000000"
        if durability:
            self.url += f"&durability={durability}"
        self.port = free_port()
        self.unix = os.path.join(folder, "socket")
        self.log = os.path.join(folder, "log")
        self.process = None
        self.epoch = 0
        self.down_since = None
        self._context = wire.unverified_tls()

    # Where clients connect.

    def where(self):
        return ("127.0.0.1", self.port), self._context if self.tls else None, self.epoch

    def where_unix(self):
        return self.unix, None, self.epoch

    def client(self, timeout=60, unix=False):
        return wire.Client(self.where_unix if unix else self.where, timeout, self.headers)

    def http_url(self):
        return f"http+unix:{self.unix}" if self.tls else f"http://127.0.0.1:{self.port}"

    # Its life.

    def start(self, wait=True):
        self._configure()
        self.epoch += 1
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.bide, "serve", "--config", os.path.join(self.folder, "bide.toml")],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        if wait:
            self.wait_ready()
        return self

    def _configure(self):
        os.makedirs(self.folder, exist_ok=True)
        lines = [f'url = "{self.url}"', f'listen = ["127.0.0.1:{self.port}", "unix:{self.unix}"]']
        if self.tls:
            key, certificate = os.path.join(self.folder, "key.pem"), os.path.join(self.folder, "chain.pem")
            if not os.path.exists(key):
                subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                                "/CN=localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
            lines += ["[tls]", f'certificate = "{certificate}"', f'key = "{key}"']
        lines += ["[auth]", f"local_without_token = {'false' if self.tokens else 'true'}"]
        if self.tokens and not self.headers:
            token = subprocess.run([self.bide, "token", "create", "outside", "--scope", "read,write,work,admin", "--url",
                                    self.url], check=True, capture_output=True, text=True).stdout.strip()
            self.headers["Authorization"] = f"Bearer {token}"
        for name, section in (("limits", self.limits), ("callbacks", self.callbacks)):
            if section:
                lines.append(f"[{name}]")
                lines += [f"{key} = {value}" for key, value in section.items()]
        with open(os.path.join(self.folder, "bide.toml"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def wait_ready(self, seconds=120):
        until = now() + seconds
        while now() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}; its log is {self.log}: {self.tail()}")
            try:
                if self.client(10).call("GET", "/readyz").status == 200:
                    self._up()
                    return
            except wire.Cut:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"the server was not ready within {seconds} s; its log is {self.log}")

    def _up(self):
        if self.down_since is not None:
            self.record.add("outage", t0=self.down_since)
        self.down_since = None

    def _down(self):
        t0 = now()
        self.down_since = self.down_since or t0
        return t0

    def kill(self):
        t0 = self._down()
        self.process.kill()
        self.process.wait()
        self.record.add("fault", name="kill", t0=t0)
        if self.callbacks:
            # Deliveries that were on their way: what the receiver got of them it may not have been able to write down.
            self.record.add("worker", worker="callbacks", queues=["callbacks"], unseen=8, ended="killed", t0=t0)

    def terminate(self, seconds=60):
        """Ends it by SIGTERM. `grace` is 25 s; a server that is still there after `seconds` broke its promise."""
        t0 = self._down()
        self.process.terminate()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.record.add("check", name="stop", ok=False, text=f"still running {seconds} s after SIGTERM")
            self.process.kill()
            status = self.process.wait()
        else:
            self.record.add("check", name="stop", ok=status == 0, text=f"exit status {status} after SIGTERM")
        self.record.add("fault", name="term", t0=t0)

    def pause(self, seconds):
        t0 = self._down()
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)
        self._up()
        self.record.add("fault", name="stop", t0=t0)

    def end(self):
        """At the end of a scenario, whatever became of it."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    def tail(self, size=600):
        try:
            with open(self.log, "rb") as file:
                return file.read()[-size:].decode(errors="replace")
        except OSError:
            return ""

    def anonymous_bytes(self):
        """Memory that is the process's own: files that are mapped do not count."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as lines:
                for line in lines:
                    if line.startswith("RssAnon:"):
                        return int(line.split()[1]) * 1024
        except OSError:
            pass
        return 0
