"""Leases when workers die and the server is killed: nobody takes more than was asked for, a lease keeps its length over a
restart, and no job dies of an attempt that no worker had."""

import os
import socket
import sys
import threading
import time

import command
import running_server

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "examples")))
import http_worker

JOBS = 1500
WORKERS = 10
DEAD_WORKERS = 2
MAX = 10


class LeasesTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.server = running_server.RunningServer(command.BIDE, self.folder).start()
        self.addCleanup(self.server.end)
        self.mutex = threading.Lock()
        self.delivered = set()
        self.failures = []
        self.drained = threading.Event()

    def connect(self):
        api = http_worker.Server(self.server.url)
        self.addCleanup(api.close)
        return api

    def persist(self, api, method, path, body=None):
        while True:
            try:
                return api.call(method, path, body, timeout=60)
            except ConnectionError:
                time.sleep(0.02)
            except http_worker.Problem as problem:
                if problem.status != 503:
                    raise

    def lease(self, api, maximum=MAX):
        answer = self.persist(api, "POST", "/v1/leases", {"max": maximum, "wait": "1s", "lease": "2s"})
        with self.mutex:
            self.delivered.update(lease["id"] for lease in answer["leases"])
        return answer["leases"]

    def work(self, dies):
        api = http_worker.Server(self.server.url)
        try:
            while not self.drained.is_set():
                leases = self.lease(api)
                if dies and leases:
                    return  # And is never heard of again.
                if not leases:
                    continue
                settlements = [{"id": each["id"], "token": each["token"], "outcome": "done"} for each in leases]
                self.persist(api, "POST", "/v1/leases/settle", {"settlements": settlements})
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")
        finally:
            api.close()

    def counts(self, api):
        queues = self.persist(api, "GET", "/v1/queues")["queues"]
        return {name: sum(queue[name] for queue in queues) for name in ("scheduled", "ready", "running", "dead")}

    def test_no_job_dies_of_an_attempt_that_no_worker_had(self):
        api = self.connect()
        for _ in range(JOBS // 500):
            self.persist(api, "POST", "/v1/jobs", [{"kind": "work", "retry": "none"}] * 500)
        # They die first: their leases are out when the server is killed.
        dead = [threading.Thread(target=self.work, args=(True,)) for _ in range(DEAD_WORKERS)]
        for thread in dead:
            thread.start()
        for thread in dead:
            thread.join(timeout=60)
        lost = set(self.delivered)
        self.assertEqual(self.counts(api)["running"], len(lost), "the server holds more than was asked for")
        living = [threading.Thread(target=self.work, args=(False,)) for _ in range(WORKERS)]
        for thread in living:
            thread.start()
        while len(self.delivered) < JOBS // 4 and not self.failures:
            time.sleep(0.01)
        self.server.kill()
        self.server.start()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not self.failures:
            counts = self.counts(api)
            # What polls asked for before the kill and since, and what the dead ones had.
            self.assertLessEqual(counts["running"], 2 * WORKERS * MAX + len(lost))
            if counts["ready"] + counts["running"] + counts["scheduled"] == 0:
                break
            time.sleep(0.05)
        self.drained.set()
        for thread in living:
            thread.join(timeout=60)
        self.assertEqual(self.failures, [])
        buried = {job["id"] for job in self.persist(api, "GET", "/v1/jobs?state=dead&limit=1000")["jobs"]}
        self.assertEqual(buried - self.delivered, set(), "jobs are dead that no worker ever had")
        self.assertEqual(self.persist(api, "GET", "/v1/audit")["problems"], [])

    def test_a_short_lease_stays_short_over_a_restart(self):
        api = self.connect()
        job = self.persist(api, "POST", "/v1/jobs", {"kind": "work"})["id"]
        [first] = self.lease(api, 1)
        self.server.stop()  # In order: it is known that the worker has it.
        self.server.start()
        answer = self.persist(api, "POST", "/v1/leases", {"max": 1, "wait": "12s", "lease": "2s"})
        self.assertEqual([each["id"] for each in answer["leases"]], [job], "its lease of 2 s was made longer")
        self.assertEqual(answer["leases"][0]["attempt"], 2)
        self.assertEqual(answer["leases"][0]["counts"]["lost"], 1)
        self.assertNotEqual(answer["leases"][0]["token"], first["token"])

    def test_a_worker_goes_on_with_its_lease_after_the_server_was_killed(self):
        api = self.connect()
        self.persist(api, "POST", "/v1/jobs", {"kind": "work", "retry": "none"})
        [lease] = self.persist(api, "POST", "/v1/leases", {"max": 1, "wait": "5s", "lease": "60s"})["leases"]
        for _ in range(3):
            self.server.kill()
            self.server.start()
            answer = self.persist(api, "POST", "/v1/leases/extend",
                                  {"leases": [{"id": lease["id"], "token": lease["token"]}]})
            self.assertFalse(answer["leases"][0]["lost"])
            others = self.persist(api, "POST", "/v1/leases", {"max": 1})["leases"]
            self.assertEqual(others, [])
        done = self.persist(api, "POST", "/v1/leases/settle",
                            {"id": lease["id"], "token": lease["token"], "outcome": "done"})
        self.assertEqual(done["status"], 200)

    # A client that vanishes without a word is noticed by TCP: the kernel shows that it keeps watch.
    def test_the_connection_of_a_waiting_poll_is_kept_under_watch(self):
        with socket.create_connection(("127.0.0.1", self.server.port)) as poll:
            body = b'{"wait":"5m"}'
            poll.sendall(b"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            ends = (f"0100007F:{self.server.port:04X}", f"0100007F:{poll.getsockname()[1]:04X}")
            timer = None
            while timer != "02":  # A keep-alive timer; before, data may be on its way.
                with open("/proc/net/tcp", encoding="ascii") as table:
                    rows = [line.split() for line in table]
                timer, = [row[5].split(":")[0] for row in rows if (row[1], row[2]) == ends]


if __name__ == "__main__":
    command.main()
