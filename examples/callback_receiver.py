#!/usr/bin/env python3
"""A receiver of bide's callbacks, in Python's standard library.

    BIDE_WEBHOOK_SECRET=whsec_... ./callback_receiver.py --port 9000
    bide enqueue greet '{"name": "Ann"}' ... with the callback http://127.0.0.1:9000/

It checks the signature of every delivery (https://www.standardwebhooks.com), forgets what it has seen before, and says by
its answer what becomes of the job:

    200  done; what is answered is the job's result       401  not signed by somebody who knows the secret
    202  accepted: settled later, with --server           410  dead: never again
    429  later, after Retry-After                         anything else: again, by the job's retry policy
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 5 * 60  # How old a delivery may be: an old one that somebody recorded is not taken.


def is_signed(secrets, headers, body, now=None):
    """True when one of the signatures was made with one of the secrets, not long ago."""
    identifier, sent = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent.isdigit() or abs((now or time.time()) - int(sent)) > TOLERANCE_S:
        return False
    text = f"{identifier}.{sent}.".encode() + body
    for secret in secrets:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        wanted = "v1," + base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode()
        for given in headers.get("webhook-signature", "").split():
            if hmac.compare_digest(given.encode(), wanted.encode()):
                return True
    return False


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    secrets = []
    server_url = None  # Where deliveries that were accepted are settled.
    seen = {}  # The answer to each delivery: at least once means sometimes twice.

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not is_signed(self.secrets, self.headers, body):
            return self.answer(401, {"error": "the signature is wrong"})
        job = self.headers["webhook-id"]  # Which is signed, unlike bide-job-id.
        if job in self.seen:
            return self.answer(200, self.seen[job])
        print(f"{self.headers['bide-kind']} {job} attempt {self.headers['bide-attempt']}: {body.decode(errors='replace')}", flush=True)
        if self.path == "/later" and self.server_url:
            lease = {"id": job, "token": self.headers["bide-lease-token"]}
            credential = self.headers["bide-settle-token"]
            threading.Thread(target=self.work_and_settle, args=(lease, credential, body)).start()
            return self.answer(202, {"accepted": True})
        self.seen[job] = {"bytes": len(body)}
        return self.answer(200, self.seen[job])

    def work_and_settle(self, lease, credential, body):
        """The work that takes too long to be answered at once. The credential is good for this lease, and nothing else."""
        settlement = {**lease, "outcome": "done", "result": {"bytes": len(body), "late": True}}
        request = urllib.request.Request(f"{self.server_url}/v1/leases/settle",
                                         json.dumps({"settlements": [settlement]}).encode(),
                                         {"content-type": "application/json",
                                          "authorization": f"Bearer {credential}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(f"settled {lease['id']}: {answer.read().decode()}", flush=True)

    def answer(self, status, value):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description="Receives bide's callbacks.")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--server", help="the bide server, to settle what was answered 202: http://127.0.0.1:7070")
    options = parser.parse_args()
    Receiver.secrets = os.environ["BIDE_WEBHOOK_SECRET"].split()
    Receiver.server_url = options.server
    with ThreadingHTTPServer(("127.0.0.1", options.port), Receiver) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
