"""A `bide serve` of the test's own: started, killed, started again, on a port that stays."""

import os
import random
import socket
import subprocess


def free_port():
    """Below 32768: while nobody listens there, no outgoing connection takes it, nor a client connects to itself."""
    while True:
        port = random.randint(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class RunningServer:
    def __init__(self, bide, folder, *words, without_token=True):
        self._bide = bide
        self._folder = folder
        self._words = ("--local-without-token", *words) if without_token else words
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.starts = 0

    def start(self):
        """Returns when it listens, as it would tell systemd."""
        self.starts += 1
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            name = f"bide-test-{os.getpid()}-{self.port}-{self.starts}"
            told.bind("\0" + name)
            told.settimeout(60)
            environment = {"PATH": os.environ["PATH"], "HOME": self._folder, "NOTIFY_SOCKET": "@" + name}
            with open(f"{self._folder}/server.log", "ab") as log:
                self.process = subprocess.Popen(
                    [self._bide, "serve", "--listen", f"127.0.0.1:{self.port}", *self._words],
                    cwd=self._folder, env=environment, stdout=log, stderr=log)
            while b"READY=1" not in told.recv(4096):
                pass
        return self

    def kill(self):
        """As the power would."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """In order; its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=60)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
