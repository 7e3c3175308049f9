"""examples/http_worker.py does a day's work for a real server: done, again, dead, extended, cancelled, stopped."""

import os
import signal
import subprocess
import sys
import threading
import time

import command
import running_server

EXAMPLES = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "examples"))
sys.path.insert(0, EXAMPLES)
import http_worker


class HttpWorkerTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.server = running_server.RunningServer(command.BIDE, self.folder).start()
        self.addCleanup(self.server.end)
        self.api = http_worker.Server(self.server.url)
        self.addCleanup(self.api.close)

    def start_worker(self, *words):
        worker = subprocess.Popen([sys.executable, "-B", f"{EXAMPLES}/http_worker.py", "--url", self.server.url, *words],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder)
        self.addCleanup(worker.stdout.close)
        self.addCleanup(worker.wait)
        self.addCleanup(lambda: worker.poll() is None and worker.kill())
        return worker

    def enqueue(self, kind, body=None, **more):
        return self.api.call("POST", "/v1/jobs", {"kind": kind, "body": body} | more)["id"]

    def result(self, job):
        return self.api.call("GET", f"/v1/jobs/{job}/result?wait=60s", timeout=90)

    def info(self, job):
        return self.api.call("GET", f"/v1/jobs/{job}")

    def test_every_outcome_is_what_the_handler_said(self):
        added = self.enqueue("add", [1, 2, 3])
        flaky = self.enqueue("flaky", retry="fixed(50ms,x5)")
        later = self.enqueue("later")
        dead = self.enqueue("add", "no list")
        exhausted = self.enqueue("flaky", retry="fixed(10ms,x2)")
        order = self.enqueue("order", queue="orders")
        unknown = self.enqueue("nobody-knows")
        worker = self.start_worker("--queue", "default", "--queue", "orders")
        self.assertEqual(self.result(added)["result"], {"sum": 6})
        self.assertEqual(self.result(flaky)["result"], {"attempts": 3})
        self.assertEqual(self.result(later)["state"], "done")
        self.assertEqual(self.info(later)["attempts"], 2)
        answer = self.result(dead)
        self.assertEqual((answer["state"], answer["dead_reason"]), ("dead", "rejected"))
        self.assertEqual(answer["error"], "the body must be a list of numbers")
        answer = self.result(exhausted)
        self.assertEqual((answer["state"], answer["dead_reason"]), ("dead", "exhausted"))
        self.assertEqual(answer["error"], "RuntimeError: attempt 2 did not work")
        self.assertEqual(self.result(order)["state"], "done")
        done = []
        while len(done) < 2:  # The effects of the order.
            done = self.api.call("GET", "/v1/jobs?queue=orders&kind=add&state=done&bodies=true")["jobs"]
            time.sleep(0.02)
        self.assertEqual(sorted(job["result"]["sum"] for job in done), [3, 7])
        info = self.info(unknown)
        self.assertEqual((info["state"], info["attempts"], info["note"]),
                         ("scheduled", 0, "no handler for nobody-knows here"))
        # A human replays the dead one with a fresh budget.
        self.assertEqual(self.api.call("POST", "/v1/dead/replay", {"ids": [exhausted]})["succeeded"], 1)
        self.assertEqual(self.result(exhausted)["state"], "dead")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=60), 0)

    def work_until(self, handlers, done):
        """A worker with handlers of the test's own, in this process."""
        worker = http_worker.Worker(http_worker.Server(self.server.url), handlers, ["default"], 4, 15, "tester")
        running = threading.Thread(target=worker.run)
        running.start()
        try:
            done()
        finally:
            worker.stop()
            running.join(timeout=60)
        self.assertFalse(running.is_alive())

    def test_an_outcome_that_cannot_be_sent_or_is_refused_is_a_failed_attempt_and_harms_no_other(self):
        circle = []
        circle.append(circle)

        def bad_effect(job):
            job.enqueue("add", [1], qeue="default")

        def bad_name(job):
            job.enqueue("no name", [1])

        def bad_error(job):
            raise RuntimeError("half a character: \ud800")

        handlers = {"add": http_worker.add, "bad_effect": bad_effect, "bad_name": bad_name, "bad_error": bad_error,
                    "a_set": lambda job: {1, 2}, "a_circle": lambda job: circle, "nan": lambda job: float("nan"),
                    "half": lambda job: "\ud800", "huge": lambda job: "x" * (17 << 20)}
        bad = {kind: self.enqueue(kind, retry="none") for kind in handlers if kind != "add"}
        good = [self.enqueue("add", [i, i]) for i in range(20)]

        def all_are_settled():
            for i, job in enumerate(good):
                self.assertEqual(self.result(job)["result"], {"sum": 2 * i})
            for kind, job in bad.items():
                answer = self.result(job)
                self.assertEqual((kind, answer["state"], answer["dead_reason"]), (kind, "dead", "exhausted"))
            self.assertIn("the server refused the outcome", self.result(bad["bad_effect"])["error"])
            self.assertIn("the server refused the outcome", self.result(bad["bad_name"])["error"])
            self.assertIn("not JSON serializable", self.result(bad["a_set"])["error"])
            self.assertIn("half a character", self.result(bad["bad_error"])["error"])
            after = self.enqueue("add", [4])
            self.assertEqual(self.result(after)["result"], {"sum": 4})

        self.work_until(handlers, all_are_settled)

    def test_a_job_longer_than_its_lease_is_kept_and_a_cancelled_one_is_stopped(self):
        worker = self.start_worker("--lease", "0.6")
        slow = self.enqueue("slow", {"seconds": 2})
        endless = self.enqueue("slow", {"seconds": 3600})
        self.assertEqual(self.result(slow)["state"], "done")
        self.assertEqual(self.info(slow)["attempts"], 1)
        self.assertEqual(self.info(endless)["state"], "running")
        self.api.call("DELETE", f"/v1/jobs/{endless}")
        with self.assertRaises(http_worker.Problem) as gone:
            self.result(endless)
        self.assertEqual(gone.exception.status, 404)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=60), 0)

    def test_a_worker_told_to_stop_finishes_what_it_has(self):
        worker = self.start_worker()
        slow = self.enqueue("slow", {"seconds": 1})
        while self.info(slow)["state"] != "running":
            time.sleep(0.02)
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=60), 0)
        self.assertEqual(self.info(slow)["state"], "done")

    def test_a_server_that_is_killed_and_comes_back_is_worked_for_on(self):
        self.start_worker("--lease", "5")
        jobs = [self.enqueue("slow", {"seconds": 1}) for _ in range(4)]
        while self.info(jobs[0])["state"] != "running":
            time.sleep(0.02)
        self.server.kill()
        self.server.start()
        self.api.close()
        for job in jobs:
            self.assertEqual(self.result(job)["state"], "done")
        self.assertEqual(self.server.stop(), 0)

    def test_a_worker_that_dies_loses_its_job_to_another(self):
        first = self.start_worker("--lease", "0.5")
        slow = self.enqueue("slow", {"seconds": 1})
        while self.info(slow)["state"] != "running":
            time.sleep(0.02)
        first.kill()
        first.wait()
        self.start_worker("--lease", "5")
        self.assertEqual(self.result(slow)["state"], "done")
        self.assertEqual(self.info(slow)["attempts"], 2)

    def test_a_long_poll_is_over_when_the_server_stops(self):
        answers = []

        def poll():
            answers.append(self.api.call("POST", "/v1/leases", {"queue": "empty", "wait": "60s"}, timeout=90))
            self.api.close()

        # A queue is shown while it has a job.
        self.api.call("POST", "/v1/jobs", {"kind": "later", "queue": "empty", "delay": "1h"})
        waiting = threading.Thread(target=poll)
        waiting.start()
        while not any(queue["name"] == "empty" and queue["workers"] for queue in
                      self.api.call("GET", "/v1/queues")["queues"]):
            time.sleep(0.02)
        self.assertEqual(self.server.stop(), 0)
        waiting.join(timeout=30)
        self.assertEqual([answer["leases"] for answer in answers], [[]])


if __name__ == "__main__":
    command.main()
