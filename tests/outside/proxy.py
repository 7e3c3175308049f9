"""A TCP proxy before the server that cuts connections at any byte, stalls them, or passes them in small pieces."""

import random
import select
import socket
import threading
import time

from record import now
from server import free_port


class Proxy(threading.Thread):
    """Passes bytes on. While `harm` is above 0, that share of the connections is cut or stalled at a byte chosen by the seed."""

    def __init__(self, context, server, name):
        super().__init__(name=name, daemon=True)
        self.context, self.server = context, server
        self.harm = 0.0
        self.cuts = self.stalls = 0
        self.rng = random.Random(f"{context.seed}/{name}")
        self.port = free_port()
        self.stopping = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=200)
        self.listener.settimeout(0.2)
        context.at_end(self.stop)

    def where(self):
        _, tls, epoch = self.server.where()
        return ("127.0.0.1", self.port), tls, epoch

    def run(self):
        while not self.stopping.is_set():
            try:
                client, _ = self.listener.accept()
            except TimeoutError:
                continue
            except OSError:
                break
            fate = None
            if self.rng.random() < self.harm:
                fate = (self.rng.choice(("cut", "cut", "reset", "stall")), int(10 ** self.rng.uniform(0, 6)))
            threading.Thread(target=self._pass, args=(client, fate), daemon=True).start()
        self.listener.close()

    def _pass(self, client, fate):
        try:
            server = socket.create_connection(self.server.where()[0], 10)
        except OSError:
            client.close()
            return
        passed, sides = 0, {client: server, server: client}
        try:
            while not self.stopping.is_set():
                for side in select.select(list(sides), [], [], 0.5)[0]:
                    data = side.recv(65536)
                    if not data:
                        return
                    if fate and passed + len(data) >= fate[1]:
                        sides[side].sendall(data[:fate[1] - passed])
                        self._harm(fate[0], client, server)
                        return
                    sides[side].sendall(data)
                    passed += len(data)
        except OSError:
            pass
        finally:
            client.close()
            server.close()

    def _harm(self, how, client, server):
        if how == "stall":
            self.stalls += 1
            time.sleep(1.5)
        elif how == "reset":
            for side in (client, server):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.cuts += 1
        self.context.record.add("fault", name="cut", t0=now())

    def stop(self):
        self.stopping.set()
