"""A crowd as a process of its own, so that it takes no time of the interpreter from those who are measured.

Reads one line of JSON (see Crowd) and then attacks until its standard input ends. Prints `ready`, and then how many of its
connections were ended by the server.
"""

import gzip
import json
import random
import socket
import sys
import threading

ESTABLISHED = 1  # As the first byte of TCP_INFO has it.


class Crowd:
    """Opens what it has again when the server ended it, some of it at a time: it is slow, not a flood."""

    def __init__(self, address, token, few, lists, never, slow, packed, body_bytes):
        """`few`: ids of large jobs; `lists`: the path of a list with bodies."""
        self.address, self.few, self.lists = tuple(address), few, lists
        self.headers = {"Authorization": token} if token else {}
        self.rng = random.Random(7)
        self.bomb = gzip.compress(bytes(body_bytes), 9)  # Half of it is sent at once.
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
            each.connect(self.address)
            head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            head += "".join(f"{name}: {value}\r\n" for name, value in (self.headers | fields).items())
            each.setblocking(False)
            each.send(head.encode() + body)
        except OSError:
            each.close()
            return None
        return each

    def _never_reads(self):
        path = self.rng.choice((self.lists, f"/v1/jobs/{self.few[0]}", f"/v1/jobs/{self.few[1]}"))
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


def main():
    with Crowd(**json.loads(sys.stdin.readline())) as crowd:
        print("ready", flush=True)
        sys.stdin.read()
    print(crowd.ended, flush=True)


if __name__ == "__main__":
    main()
