"""A receiver of callbacks: writes down every delivery, and answers well, badly, or later."""

import http.server
import random
import threading

import content
import wire
from record import now
from server import free_port
from worker import Settlement, settle


class Receiver:
    def __init__(self, context, server):
        self.context, self.server = context, server
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self.kind = True  # From then on everything is answered 200.
        self.rng = random.Random(f"{context.seed}/receiver")
        self.mutex = threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                receiver.deliver(self)

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # A server that is killed cuts its connections.

        self.http = Quiet(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        context.at_end(self.http.shutdown)

    def settings(self):
        """The section [callbacks] of a server that may call it."""
        return {"policy": '"allow-list"', "allow": f'["127.0.0.1:{self.port}"]', "lease": '"5s"',
                "shortest_pause": '"200ms"', "longest_pause": '"1s"'}

    def deliver(self, request):
        t0 = now()
        length = int(request.headers.get("content-length", 0))
        body = request.rfile.read(length)
        if len(body) < length:
            return  # The server was killed while it was sending.
        headers = {name[12:]: value for name, value in request.headers.items() if name.startswith("bide-header-")}
        with self.mutex:
            choice = "well" if self.kind else self.rng.choice(("well",) * 6 + ("badly", "later", "busy", "cut"))
        if request.headers["bide-kind"] == "bide.on_done":
            self._told(body, t0)
            return self._answer(request, 500 if choice == "badly" else 200, b"")
        id, token = request.headers["bide-job-id"], request.headers["bide-lease-token"]
        self.context.record.add(
            "delivery", t0=t0, id=id, attempt=int(request.headers["bide-attempt"]), token=token, answered=choice,
            label=headers.get(content.LABEL), sha=content.digest(body), size=len(body), kind=request.headers["bide-kind"],
            queue=request.headers["bide-queue"], content_type=request.headers.get("content-type", ""))
        if choice == "cut":
            request.close_connection = True
            return
        status = {"well": 200, "badly": 500, "later": 202, "busy": 503}[choice]
        self._answer(request, status, f"heard {id}".encode() if status == 200 else b"")
        if choice == "later":
            threading.Timer(0.3, self._settle, args=(id, token)).start()

    def _told(self, body, t0):
        fields, _ = wire.raw_object(body.decode())
        result = content.returned(fields, "result")
        self.context.record.add("told", t0=t0, id=fields["id"][0], state=fields["state"][0],
                                sha=None if result is None else content.digest(result))

    def _answer(self, request, status, body):
        try:
            request.send_response(status)
            request.send_header("Content-Type", "text/plain")
            request.send_header("Content-Length", str(len(body)))
            if status == 503:
                request.send_header("Retry-After", "1")
            request.end_headers()
            request.wfile.write(body)
        except OSError:
            pass  # The server was killed while it waited.

    def _settle(self, id, token):
        lease = {"id": id, "token": token, "attempt": 0}
        client = self.server.client(20)
        for _ in range(100):
            if settle(client, self.context.record, [Settlement(lease, "done", self.context.seed)])[0] not in ("unknown", "unsent"):
                break
            threading.Event().wait(0.1)
        client.drop()
