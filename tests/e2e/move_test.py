"""`bide move` between real brokers, killed again and again: every job arrives as it was, once where the target knows ids."""

import http.client
import json
import random
import time
import unittest

import command
import rabbitmq_node
import running_server

JOBS = 3000
KILLS = 12
COMPARED = ("kind", "queue", "body", "body_text", "body_base64", "content_type", "headers", "priority", "retry",
            "unique_key", "time_limit_ms", "expires", "state", "due", "attempts", "counts", "errors", "dead_reason",
            "finished")


def call(server, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(method, path, json.dumps(body) if body is not None else None, {"content-type": "application/json"})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {content}")
    return content


def make_jobs(server, count, unique_keys=True, longest_delay=None):
    """Ready, scheduled, failed once and dead ones, in several queues."""
    chance = random.Random(7)
    for first in range(0, count, 500):
        jobs = []
        for number in range(first, min(first + 500, count)):
            job = {"kind": "work", "queue": f"q{number % 3}", "body": {"number": number}}
            if number % 5 == 0:
                job["delay_ms"] = chance.randint(2000, longest_delay or 50_000_000)
            if unique_keys and number % 7 == 0:
                job["unique_key"] = f"key {number}"
            if number % 11 == 0:
                job |= {"priority": 5, "headers": {"x": "y"}, "retry": "steps(1h,2h)", "time_limit": "5m"}
            jobs.append(job)
        call(server, "POST", "/v1/jobs", jobs)
    leases = call(server, "POST", "/v1/leases", {"queues": ["q0", "q1"], "max": 200})["leases"]
    settlements = [{"id": lease["id"], "token": lease["token"],
                    **({"outcome": "dead", "error": f"no {i}", "reason": "rejected"} if i % 2 else
                       {"outcome": "retry", "after_ms": longest_delay or 40_000_000, "error": f"later {i}"})}
                   for i, lease in enumerate(leases)]
    assert len(settlements) > 50
    call(server, "POST", "/v1/leases/settle", {"settlements": settlements})


class MoveTest(command.CommandTest):
    def serve(self, store):
        server = running_server.RunningServer(command.BIDE, self.folder, "--url", f"bide:./{store}").start()
        self.addCleanup(server.end)
        return server

    def filled(self, store, **more):
        server = self.serve(store)
        make_jobs(server, JOBS, **more)
        server.stop()
        return self.jobs(f"bide:./{store}")

    def jobs(self, url):
        """By id, those fields that a move must keep."""
        found, cursor = {}, None
        while True:
            page = self.bide_json("job", "list", "--limit", "1000", "--url", url, *(["--cursor", cursor] if cursor else []))
            for job in page["jobs"]:
                found[job["id"]] = {field: job[field] for field in COMPARED if field in job}
            cursor = page.get("next")
            if not cursor:
                return found

    def move_with_kills(self, source, target, *words, kills=KILLS):
        """A mover that is killed so often, and one that is not; how many of the kills hit it at work."""
        chance = random.Random(time.time_ns())
        hits = 0
        for _ in range(kills):
            mover = self.start("move", "--from", source, "--to", target, "--rate", "500", *words)
            time.sleep(chance.uniform(0.02, 0.35))
            hits += mover.poll() is None
            mover.kill()
            mover.communicate()
        return hits, self.bide_json("move", "--from", source, "--to", target, *words)

    def assert_same(self, after, before):
        self.assertEqual(sorted(after), sorted(before))
        for number, job in before.items():
            self.assertEqual(after[number], job)

    def assert_sound(self, url, live):
        audit = self.bide_json("audit", "--url", url)
        self.assertEqual(audit["problems"], [])
        self.assertEqual(audit["live"], live)

    def assert_nothing_is_paused(self, url):
        queues = self.bide_json("queue", "list", "--url", url)["queues"]
        self.assertEqual([queue["name"] for queue in queues if queue["paused"]], [])

    def test_from_one_store_to_another_with_kills(self):
        before = self.filled("one")
        hits, report = self.move_with_kills("bide:./one", "bide:./two")
        self.assertGreater(hits, 2, "the mover was not hit at work")
        self.assertEqual(report["refused"], 0, report)
        self.assertEqual(report["at_both"], [])
        self.assert_same(self.jobs("bide:./two"), before)
        self.assertEqual(self.jobs("bide:./one"), {})
        self.assert_sound("bide:./one", 0)
        self.assert_sound("bide:./two", len(before))
        self.assert_nothing_is_paused("bide:./one")
        self.assert_nothing_is_paused("bide:./two")
        self.bide("store", "check", "two")
        self.bide("store", "check", "one")

    def test_from_a_store_to_a_server_and_back_with_kills(self):
        before = self.filled("one")
        server = self.serve("two")
        url = f"http://127.0.0.1:{server.port}"
        hits, report = self.move_with_kills("bide:./one", url)
        self.assertGreater(hits, 2, "the mover was not hit at work")
        self.assertEqual(report["refused"], 0, report)
        self.assert_same(self.jobs(url), before)
        _, report = self.move_with_kills(url, "bide:./three")
        self.assertEqual(report["refused"], 0, report)
        server.stop()
        self.assert_same(self.jobs("bide:./three"), before)
        for store, live in (("one", 0), ("two", 0), ("three", len(before))):
            self.assert_sound(f"bide:./{store}", live)

    def test_a_dry_run_changes_nothing(self):
        self.bide("enqueue", "mail", "a", "--url", "bide:./one")
        answer = self.bide_json("move", "--from", "bide:./one", "--to", "bide:./two", "--dry-run")
        self.assertEqual((answer["waiting"], answer["dead"], answer["running"]), (1, 0, 0))
        self.assertEqual(len(self.jobs("bide:./one")), 1)
        self.assert_fails(66, "there is no store", "queue", "list", "--url", "bide:./two")

    def test_mistakes_are_told(self):
        self.bide("enqueue", "mail", "a", "--url", "bide:./one")
        self.assert_fails(64, "--to is missing", "move", "--from", "bide:./one")
        self.assert_fails(64, "the same", "move", "--from", "bide:./one", "--to", "bide:./one")
        self.assert_fails(64, "the same place", "move", "--from", "bide:./one", "--to", f"bide:{self.folder}/one")
        self.assert_fails(66, "there is no store", "move", "--from", "bide:./none", "--to", "bide:./one")
        self.assertEqual(len(self.jobs("bide:./one")), 1)

    def test_what_is_refused_stays_and_is_told(self):
        for store in ("one", "two"):
            self.bide("enqueue", "mail", "a", "--unique", "k", "--url", f"bide:./{store}")
        code, out, err = self.run_bide("move", "--from", "bide:./one", "--to", "bide:./two")
        self.assertEqual(code, 1, err)
        self.assertIn("refused by the target and stay", out)
        self.assertEqual(len(self.jobs("bide:./one")), 1)


@unittest.skipUnless(rabbitmq_node.is_installed(), "rabbitmq-server is not installed")
class RabbitmqMoveTest(MoveTest):
    @classmethod
    def setUpClass(cls):
        cls.node = rabbitmq_node.RabbitmqNode()
        cls.addClassCleanup(cls.node.stop)

    def test_to_rabbitmq_and_back_with_kills(self):
        before = self.filled("one", unique_keys=False, longest_delay=8000)
        url = f"{self.node.url}?prefix=move"
        hits, report = self.move_with_kills("bide:./one", url)
        self.assertGreater(hits, 2, "the mover was not hit at work")
        self.assertEqual(report["refused"], 0, report)
        self.assertEqual(self.jobs("bide:./one"), {})
        self.assert_sound("bide:./one", 0)
        # Nobody may have told of the queues: movers were killed at once.
        queues = ("--queue", "q0", "--queue", "q1", "--queue", "q2")
        # Once: what it holds is charged an attempt there, and a job that killed three workers would be dead.
        self.move_with_kills(url, "bide:./two", *queues, kills=1)
        deadline = time.monotonic() + 120
        while len(self.jobs("bide:./two")) < len(before) and time.monotonic() < deadline:
            self.bide("move", "--from", url, "--to", "bide:./two", *queues)
        after = self.jobs("bide:./two")
        for number, job in after.items():
            if job["state"] != "dead":
                job["state"] = before[number]["state"]  # Due meanwhile.
            if job["counts"]["crashed"] > 0:
                job |= {field: before[number][field] for field in ("due", "attempts", "counts", "errors")}
        self.assert_same(after, before)
        self.assert_sound("bide:./two", len(before))

    # Only once.
    test_from_one_store_to_another_with_kills = None
    test_from_a_store_to_a_server_and_back_with_kills = None
    test_a_dry_run_changes_nothing = None
    test_mistakes_are_told = None
    test_what_is_refused_stays_and_is_told = None


if __name__ == "__main__":
    command.main()
