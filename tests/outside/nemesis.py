"""Faults, one after the other, chosen by the seed: each kind fires at least once in a run."""

import gzip
import random
import socket
import threading
import time

import wire


class Nemesis(threading.Thread):
    """`faults`: functions by name. All are done once in an order of the seed's, then at random, until told to stop."""

    def __init__(self, context, faults, pause):
        super().__init__(name="nemesis", daemon=True)
        self.context, self.faults, self.pause = context, faults, pause
        self.stopping = threading.Event()
        self.once = threading.Event()  # Every fault has fired.
        self.error = None

    def run(self):
        rng = random.Random(f"{self.context.seed}/nemesis")
        names = sorted(self.faults)
        rng.shuffle(names)
        try:
            while not self.stopping.is_set():
                name = names.pop() if names else rng.choice(sorted(self.faults))
                self.stopping.wait(rng.uniform(0.3, 1) * self.pause)
                self.faults[name](rng)
                if not names:
                    self.once.set()
        except Exception as error:
            self.error = error
            self.once.set()


def server_faults(context, server):
    """Of the process itself."""

    def kill(rng):
        server.kill()
        time.sleep(rng.choice((0, 0.2, 1)))
        server.start()

    def kill_while_starting(rng):
        server.kill()
        server.start(wait=False)
        time.sleep(rng.uniform(0, 0.2))
        server.kill()
        server.start()

    def term(rng):
        server.terminate()
        server.start()

    def other_encryption(rng):
        """Stopped in order, and started with TLS where it was without, or the other way round."""
        server.terminate()
        server.tls = not server.tls
        server.start()
        context.record.add("fault", name="other encryption")

    def stop(rng):
        server.pause(rng.choice((0.1, 0.5, 2)))

    return {"kill": kill, "kill while starting": kill_while_starting, "term": term, "other encryption": other_encryption,
            "stop": stop}


def client_faults(context, server):
    """Of clients that misbehave; none of them harms another."""

    def hang_up(rng):
        """In the middle of a request, or before its answer."""
        for _ in range(20):
            request = b"".join(wire.encode("POST", "/v1/leases", b'{"queues":["nobody"],"wait_ms":5000}',
                                           {"Content-Type": "application/json"}))
            with Quiet(server) as connection:
                connection.send(request[:rng.randrange(1, len(request) + 1)])
        context.record.add("fault", name="hang up")

    def bomb(rng):
        """A body that is a thousand times larger than it looks."""
        packed = gzip.compress(bytes(rng.choice((1, 60, 200)) * 2**20), 9)
        for path in ("/v1/jobs", "/v1/leases", "/healthz"):
            with Quiet(server) as connection:
                connection.send(wire.encode("POST", path, packed, {"Content-Type": "application/json",
                                                                   "Content-Encoding": "gzip"})[0] + packed)
                status = connection.read_answer().status
                if status < 400:
                    context.check("bomb", False, f"POST {path} with {len(packed)} compressed bytes was answered {status}")
        context.record.add("fault", name="bomb")

    def not_read(rng):
        """Large answers that nobody takes, for a second."""
        idle = []
        for _ in range(10):
            try:
                connection = wire.Connection(server.where()[0], timeout=10, receive_buffer=4096)
                connection.send(wire.encode("GET", "/v1/jobs?limit=1000")[0])
                idle.append(connection)
            except wire.Cut:
                pass
        time.sleep(1)
        for connection in idle:
            connection.close()
        context.record.add("fault", name="not read")

    def garbage(rng):
        for _ in range(10):
            with Quiet(server) as connection:
                connection.send(rng.randbytes(rng.randrange(1, 5000)))
                connection.receive()
        context.record.add("fault", name="garbage")

    return {"hang up": hang_up, "bomb": bomb, "not read": not_read, "garbage": garbage}


class Quiet:
    """A connection whose end is nobody's concern."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        address, tls, _ = self.server.where()
        self.connection = wire.Connection(address, tls, timeout=20)
        return self.connection

    def __exit__(self, kind, error, trace):
        if hasattr(self, "connection"):
            self.connection.close()
        return kind is not None and issubclass(kind, (wire.Cut, OSError, ValueError, IndexError, socket.timeout))
