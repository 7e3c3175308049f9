"""A server that is killed again and again under load, with clients that retry by Idempotency-Key: whatever was confirmed
is there, every request made exactly one job, and in the end all work is done."""

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
PRODUCERS = 4
WORKERS = 3
LEAST_LOAD = 300


class KillServerTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.server = running_server.RunningServer(command.BIDE, self.folder, "--url",
                                                   "bide:./data?done_limit=1000000").start()
        self.addCleanup(self.server.end)
        self.mutex = threading.Lock()
        self.confirmed = {}  # Name of the job -> ids it was confirmed with.
        self.asked = set()
        self.started = {}  # Name -> how often a worker got it.
        self.settled = set()
        self.run_again = []  # Leased after its settlement was confirmed.
        self.retried = 0
        self.failures = []
        self.produced = threading.Event()
        self.drained = threading.Event()

    def persist(self, api, method, path, body, headers=None):
        """Sends the same request until there is an answer."""
        while True:
            try:
                return api.call(method, path, body, headers, timeout=20)
            except ConnectionError:
                with self.mutex:
                    self.retried += 1
                time.sleep(0.02)
            except http_worker.Problem as problem:
                if problem.status not in (409, 429, 503):
                    raise

    def produce(self, api, number):
        chance = random.Random(number)
        count = 0
        while not self.produced.is_set():
            names = [f"{number}-{count + i}" for i in range(chance.choice([1, 1, 10]))]
            count += len(names)
            jobs = [{"kind": "work", "body": {"name": name}} for name in names]
            key = str(uuid.UUID(int=chance.getrandbits(128)))
            with self.mutex:
                self.asked.update(names)
            answer = self.persist(api, "POST", "/v1/jobs", jobs if len(jobs) > 1 else jobs[0], {"Idempotency-Key": key})
            results = answer["results"] if len(jobs) > 1 else [answer]
            with self.mutex:
                for name, result in zip(names, results):
                    if "id" in result:
                        self.confirmed.setdefault(name, set()).add(result["id"])
                    else:
                        self.failures.append(f"{name}: {result}")

    def work(self, api):
        while not self.drained.is_set():
            answer = self.persist(api, "POST", "/v1/leases", {"max": 20, "wait": "1s", "lease": "3s"})
            names = {}
            for lease in answer["leases"]:
                names[lease["id"]] = lease["body"]["name"]
            with self.mutex:
                for name in names.values():
                    self.started[name] = self.started.get(name, 0) + 1
                    if name in self.settled:
                        self.run_again.append(name)
            if not names:
                continue
            settlements = [{"id": lease["id"], "token": lease["token"], "outcome": "done"} for lease in answer["leases"]]
            answer = self.persist(api, "POST", "/v1/leases/settle", {"settlements": settlements})
            with self.mutex:
                for result in answer["settlements"]:
                    if result["status"] == 200:
                        self.settled.add(names[result["id"]])

    def guarded(self, function, *arguments):
        def run():
            api = http_worker.Server(self.server.url)
            try:
                function(api, *arguments)
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                self.produced.set()
                self.drained.set()
            finally:
                api.close()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def test_nothing_is_lost_and_no_job_is_there_twice(self):
        producers = [self.guarded(self.produce, number) for number in range(PRODUCERS)]
        workers = [self.guarded(self.work) for _ in range(WORKERS)]
        chance = random.Random(5)
        for _ in range(KILLS):
            before = len(self.confirmed)
            # Each time under load: not before something was confirmed since the last start.
            while len(self.confirmed) < before + LEAST_LOAD // KILLS and not self.failures:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.3))
            self.server.kill()
            self.server.start()
        self.produced.set()
        for thread in producers:
            thread.join(timeout=120)

        api = http_worker.Server(self.server.url)
        self.addCleanup(api.close)
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and not self.failures:
            queues = self.persist(api, "GET", "/v1/queues", None)["queues"]
            if all(queue["ready"] + queue["running"] + queue["scheduled"] == 0 for queue in queues):
                break
            time.sleep(0.1)
        self.drained.set()
        for thread in workers:
            thread.join(timeout=60)
        self.assertEqual(self.failures, [])

        self.assertGreaterEqual(len(self.confirmed), LEAST_LOAD, "too little load for this to mean anything")
        self.assertGreater(self.retried, 0, "no request was cut off: the kills hit nobody")
        report = self.persist(api, "GET", "/v1/audit", None)
        self.assertTrue(report["ok"], report["problems"])
        # One job for each request, never two, however often it was sent.
        self.assertEqual(set(self.confirmed), self.asked)
        self.assertEqual([name for name, ids in self.confirmed.items() if len(ids) != 1], [])
        self.assertEqual(report["accepted"], len(self.confirmed), json.dumps(report))
        self.assertEqual(report["live"], 0, json.dumps(report))
        # Each was run, and none again after its settlement had been confirmed.
        self.assertEqual(sorted(set(self.confirmed) - set(self.started)), [])
        self.assertEqual(self.run_again, [])


if __name__ == "__main__":
    command.main()
