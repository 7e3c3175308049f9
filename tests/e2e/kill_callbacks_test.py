"""A server that is killed again and again while it delivers callbacks: every job arrives, none again once it was durably
settled, and what a receiver answered with 202 stays with that receiver."""

import http.server
import json
import os
import random
import sys
import threading
import time
import uuid

import command
import running_server

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "examples")))
import http_worker

KILLS = 5
JOBS = 600
LATER = 20  # Answered with 202, and settled after all the kills.
BETWEEN_KILLS = 80  # Deliveries, at least.
CONCURRENCY = 16
LEASE_AFTER_START = 15  # Seconds that the broker gives to a lease from before it was started.


class Receiver:
    """Counts, and does well. Leases that it answered with 202 are settled by the test."""

    def __init__(self):
        self.changed = threading.Condition()  # Guards everything below.
        self.deliveries = []  # (job, token)
        self.accepted = {}  # Job -> token, of its first delivery.
        self.settled = set()  # Jobs of which the server has said that they are done, on disk.
        self.again = []  # Delivered after that.
        self.chance = random.Random(7)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                status, wait = receiver.take(self.headers["bide-job-id"], self.headers["bide-lease-token"], self.path)
                time.sleep(wait)  # So that every kill finds some on their way.
                try:
                    self.send_response(status)
                    self.send_header("content-length", "0")
                    self.end_headers()
                except OSError:
                    pass  # The server is dead.

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # Cut off by a kill.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def take(self, job, token, path):
        with self.changed:
            self.deliveries.append((job, token))
            if job in self.settled:
                self.again.append(job)
            if path == "/later":
                self.accepted.setdefault(job, token)
            self.changed.notify_all()
            return (202, 0) if path == "/later" else (200, self.chance.uniform(0.005, 0.03))

    def wait_for_more(self, count):
        with self.changed:
            wanted = len(self.deliveries) + count
            return self.changed.wait_for(lambda: len(self.deliveries) >= wanted, timeout=60)

    def end(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class KillCallbacksTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        with open(f"{self.folder}/bide.toml", "w", encoding="utf-8") as file:
            file.write('[callbacks]\npolicy = "allow-list"\nallow = ["127.0.0.1:*"]\n'
                       f'concurrency = {CONCURRENCY}\nlease = "10s"\n')
        os.chmod(f"{self.folder}/bide.toml", 0o600)
        self.receiver = Receiver()
        self.addCleanup(self.receiver.end)
        self.server = running_server.RunningServer(command.BIDE, self.folder, "--config", "bide.toml").start()
        self.addCleanup(self.server.end)
        self.over = threading.Event()

    def ask(self, method, path, body=None):
        api = http_worker.Server(self.server.url)
        try:
            return api.persist(method, path, body)
        finally:
            api.close()

    def enqueue(self, count, path):
        ids = [str(uuid.uuid4()) for _ in range(count)]
        answer = self.ask("POST", "/v1/jobs", [
            {"id": id, "kind": "notify", "body": {"name": id}, "callback": self.receiver.url + path} for id in ids])
        self.assertEqual(answer["failed"], 0, answer)
        return ids

    def wait_until(self, holds, patience=60):
        deadline = time.monotonic() + patience
        while not holds():
            self.assertLess(time.monotonic(), deadline, "it did not come to pass")
            time.sleep(0.05)

    def look_for_settled(self):
        """What is listed as done may not be on disk yet; it is when the same process has answered another question."""
        api = http_worker.Server(self.server.url)
        while not self.over.is_set():
            try:
                page = api.call("GET", "/v1/jobs?state=done&limit=1000")
                api.call("GET", "/v1/queues")
                with self.receiver.changed:
                    self.receiver.settled.update(job["id"] for job in page["jobs"])
            except (ConnectionError, http_worker.Problem):
                pass
            time.sleep(0.02)
        api.close()

    def test_every_callback_arrives_and_none_again_after_it_was_settled(self):
        later = self.enqueue(LATER, "/later")
        self.wait_until(lambda: self.ask("GET", "/v1/callbacks?limit=1")["accepted"] == LATER)
        jobs = self.enqueue(JOBS, "/hook")
        looking = threading.Thread(target=self.look_for_settled)
        looking.start()
        self.addCleanup(looking.join)
        self.addCleanup(self.over.set)

        chance = random.Random(5)
        for _ in range(KILLS):
            # Each time at work: not before some were delivered since the last start.
            self.assertTrue(self.receiver.wait_for_more(BETWEEN_KILLS), "nothing is delivered any more")
            time.sleep(chance.uniform(0, 0.05))
            self.server.kill()
            self.server.start()
        started = time.monotonic()
        done = lambda: sum(queue["done"] for queue in self.ask("GET", "/v1/queues")["queues"])
        self.wait_until(lambda: done() >= JOBS)

        # For longer than any lease lives by itself nobody takes away what a receiver has accepted.
        time.sleep(max(0, started + LEASE_AFTER_START + 2 - time.monotonic()))
        self.assertEqual(self.ask("GET", "/v1/callbacks?limit=1")["accepted"], LATER)
        self.assertEqual(sorted(self.receiver.accepted), sorted(later))
        answer = self.ask("POST", "/v1/leases/settle", {"settlements": [
            {"id": job, "token": token, "outcome": "done"} for job, token in self.receiver.accepted.items()]})
        self.assertEqual([each for each in answer["settlements"] if each["status"] != 200], [])

        report = self.ask("GET", "/v1/audit")
        self.assertTrue(report["ok"], report["problems"])
        self.assertEqual((report["accepted"], report["done"], report["live"]), (JOBS + LATER, JOBS + LATER, 0),
                         json.dumps(report))
        deliveries = self.receiver.deliveries
        delivered = [job for job, _ in deliveries]
        self.assertEqual(set(delivered), set(jobs + later))
        self.assertEqual(self.receiver.again, [], "delivered again although it was settled")
        # A lease is delivered once; and only those that were on their way when the server was killed come again.
        self.assertEqual(len(set(deliveries)), len(deliveries))
        self.assertEqual([job for job in later if delivered.count(job) != 1], [])
        repeated = len(deliveries) - JOBS - LATER
        self.assertLessEqual(repeated, KILLS * CONCURRENCY)
        self.assertGreater(repeated, 0, "no delivery was cut off: the kills hit nobody")
        self.assertGreater(len(self.receiver.settled), JOBS // 2, "too little was seen for this to mean anything")


if __name__ == "__main__":
    command.main()
