"""Clients that never read, slow ones and large compressed bodies at once: others are neither refused nor kept waiting for it."""

import gzip
import json
import random
import socket
import subprocess
import threading

import wire
from content import Job
from context import Watch, list_path
from innocent import surrounded, wait_calls
from producer import enqueue
from readback import read_back
from record import now

MIB = 2**20
ESTABLISHED = 1  # As the first byte of TCP_INFO has it.


def run(context):
    """Once each: the crowd has no token, one of its own, and the one of those who do nothing wrong."""
    never, slow, packed, calls = (40, 2000, 8, 150) if context.long else (40, 200, 8, 15)
    whole = 512 if context.long else 64
    context.plan(faults={"crowd of strangers": 1, "crowd with a token": 1, "crowd with the same token": 1},
                 minimum={"acked": 60, "requests": 3 * calls})
    limits = {"held_bytes": whole * MIB, "body_bytes": whole // 8 * MIB, "connections": slow + 500}
    server = context.server(tokens=True, limits=limits).start()
    client = server.client()
    few = [Job(context.seed, f"f{n}", "few", size=5 * MIB, form="body_base64", own_id=True) for n in range(2)]
    for job in few:
        enqueue(client, context.record, [job])
    for begin in range(0, 60, 10):
        enqueue(client, context.record, [Job(context.seed, f"m{begin + n}", "many", size=700_000, own_id=True)
                                         for n in range(10)], "ndjson")
    # Beside held_bytes: what the store has in its inbox and keeps warm, and jobs that are being read for an answer.
    watch = Watch(context, server, memory_limit=(whole + (160 if context.long else 64)) * MIB, every=0.05)
    watch.start()

    crowds = (("strangers", None), ("with a token", own_token(server)), ("with the same token", server.headers["Authorization"]))

    def attack(innocents):
        for name, token in crowds:
            quiet = latencies(context, innocents, calls)
            with Crowd(server, token, few, never, slow, packed, whole // 8 * MIB) as crowd:
                context.record.add("fault", name=f"crowd {name}" if token else f"crowd of {name}")
                busy = latencies(context, innocents, calls)
            after = latencies(context, innocents, 2 + calls // 5)
            context.note(f"crowd {name}: p50 {quantile(quiet, .5):.1f} ms before, {quantile(busy, .5):.1f} during, "
                         f"p99 {quantile(quiet, .99):.1f} before, {quantile(busy, .99):.1f} during, {quantile(after, .99):.1f} "
                         f"after: ratio {quantile(busy, .99) / quantile(quiet, .99):.2f} of {len(busy)} requests; "
                         f"{crowd.ended} of the crowd were ended")

    surrounded(context, server, 4, attack)
    context.note(f"at most {watch.worst / MIB:.0f} MiB of memory, {watch.baseline / MIB:.0f} at the start, held_bytes {whole} MiB")
    client.drop()  # It was idle while the server was full.
    read_back(client, context.record, results=0)


def own_token(server):
    """Somebody else who may do the same."""
    token = subprocess.run([server.bide, "token", "create", "crowd", "--scope", "read,write,work", "--url", server.url],
                           check=True, capture_output=True, text=True).stdout.strip()
    client = wire.Client(server.where, 60, {"Authorization": f"Bearer {token}"})
    until = now() + 60
    while client.call("GET", "/v1/queues").status != 200 and now() < until:
        threading.Event().wait(0.1)  # The server looks at its tokens once a second.
    client.drop()
    return f"Bearer {token}"


def latencies(context, innocents, calls):
    """In milliseconds, of what they do in this time."""
    began = now()
    wait_calls(innocents, calls)
    return [(each["t1"] - each["t0"]) * 1000 for each in context.record.of("request") if each["innocent"] and each["t0"] >= began]


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


class Crowd:
    """Opens what it has again when the server ended it, some of it at a time: it is slow, not a flood."""

    def __init__(self, server, token, few, never, slow, packed, body_bytes):
        self.server, self.few = server, few
        self.headers = {"Authorization": token} if token else {}
        self.rng = random.Random(7)
        self.bomb = gzip.compress(bytes(body_bytes), 9)  # Half of it is sent at once.
        self.lists = list_path(server.client())
        self.makers = [self._never_reads] * never + [self._slow_head, self._slow_body, self._slow_reader, self._slow_body] * (slow // 4) \
            + [self._packed] * packed
        self.sockets = [None] * len(self.makers)
        self.unsent = {}  # Of compressed bodies.
        self.ended = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        for at, make in enumerate(self.makers):
            self.sockets[at] = make()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        for each in filter(None, self.sockets):
            each.close()

    def _run(self):
        at = 0
        while not self.stopping.wait(0.02):
            # Each gets a byte about twice a second.
            opened = False
            for _ in range(max(1, len(self.sockets) // 25)):
                at = (at + 1) % len(self.sockets)
                if self._trickle(at):
                    continue
                if self.sockets[at] is not None:
                    self.ended += 1
                    self.sockets[at].close()
                self.sockets[at] = None if opened else self.makers[at]()
                opened = True

    def _trickle(self, at):
        make, each = self.makers[at], self.sockets[at]
        if each is None:
            return False
        try:
            if each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != ESTABLISHED:
                return False
            if make == self._slow_reader:
                each.recv(100)
            elif make == self._packed:
                left = self.unsent.setdefault(each, self.bomb[len(self.bomb) // 2:])
                self.unsent[each] = left[each.send(left[:1]):]
            elif make != self._never_reads:
                each.send(b"a")
            return True
        except BlockingIOError:
            return True
        except OSError:
            return False

    def _open(self, method, path, fields, body=b"", buffer=None):
        each = socket.socket()
        try:
            if buffer:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            each.connect(self.server.where()[0])
            head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            head += "".join(f"{name}: {value}\r\n" for name, value in (self.headers | fields).items())
            each.setblocking(False)
            each.send(head.encode() + body)
        except OSError:
            each.close()
            return None
        return each

    def _never_reads(self):
        path = self.rng.choice((self.lists, f"/v1/jobs/{self.few[0].id}", f"/v1/jobs/{self.few[1].id}"))
        return self._open("GET", path, {}, b"\r\n", 4096)

    def _slow_reader(self):
        return self._open("GET", self.lists.replace("1000", "2"), {}, b"\r\n", 4096)

    def _slow_head(self):
        return self._open("GET", "/v1/queues", {}, b"X-Slow: ")

    def _slow_body(self):
        body = json.dumps({"queue": "slow", "kind": "slow", "body_text": "x" * 60_000}).encode()
        return self._open("POST", "/v1/jobs", {"Content-Type": "application/json", "Content-Length": len(body) + 10_000},
                          b"\r\n" + body)

    def _packed(self):
        return self._open("POST", "/v1/jobs", {"Content-Type": "application/json", "Content-Encoding": "gzip",
                                               "Content-Length": len(self.bomb)}, b"\r\n" + self.bomb[:len(self.bomb) // 2])
