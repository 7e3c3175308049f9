"""`bide rabbitmq` against a real server of the test's own."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import command
import rabbitmq_node

STEPS = "steps(10s,100s,1h,2h,10h)"


def setUpModule():
    global NODE
    if not rabbitmq_node.is_installed():
        raise unittest.SkipTest("rabbitmq-server is not installed")
    NODE = rabbitmq_node.RabbitmqNode()
    unittest.addModuleCleanup(NODE.stop)


def lines_of(path):
    """Of a file that may not be there yet."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


class RabbitmqTest(command.CommandTest):
    """Each test has a prefix of its own on the one server."""

    def setUp(self):
        super().setUp()
        self.prefix = "test-" + self.id().rsplit(".", 1)[1][5:45]
        self.url = f"{NODE.url}?prefix={self.prefix}"

    def queues(self):
        return {name: count for name, count in NODE.queues().items() if name.startswith(self.prefix + ".")}

    def rabbitmq(self, what, *words, url=None):
        """(exit code, answer)"""
        code, out, err = self.run_bide("rabbitmq", what, "--url", url or self.url, "--json", *words)
        self.assertTrue(out, err)
        return code, json.loads(out)

    def findings(self, *words, url=None, check=None, weight="problem"):
        code, answer = self.rabbitmq("doctor", *words, url=url)
        problems = [each for each in answer["findings"] if each["weight"] == "problem"]
        self.assertEqual(code, 1 if problems else 0, answer)
        self.assertEqual(answer["problems"], len(problems))
        return [each for each in answer["findings"]
                if each["weight"] == weight and (check is None or each["check"] == check)]

    def wait_until(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"it did not happen; queues: {self.queues()}")
            time.sleep(0.1)

    def declare_with_a_limit(self, queue, limit):
        """As an earlier version did."""
        NODE.declare_queue(f"{self.prefix}.queue.{queue}",
                           {"x-queue-type": "quorum", "x-max-length": limit, "x-overflow": "reject-publish",
                            "x-dead-letter-exchange": f"{self.prefix}.lost", "x-delivery-limit": 100,
                            "x-dead-letter-strategy": "at-least-once"})


class RefusalTest(RabbitmqTest):
    def test_what_cannot_be_done_is_refused_before_anything_is_done(self):
        code, out, err = self.run_bide("enqueue", "mail", "--wait", "--url", self.url)
        self.assertEqual(code, 64, err)
        self.assertIn("nothing was enqueued", err)
        self.assertNotIn(f"{self.prefix}.queue.default", self.queues())
        for flag in ("--rate", "--canary"):
            code, out, err = self.run_bide("dead", "replay", "--all", flag, "5", "--url", self.url)
            self.assertEqual(code, 64, err)
            self.assertIn("nothing was replayed", err)

    def test_a_queue_that_is_not_there_and_may_not_be_declared_is_not_found(self):
        self.bide("rabbitmq", "apply", "--url", self.url)
        self.assert_fails(66, "no queue took the message", "enqueue", "hello", "--url", self.url + "&declare=no")


class PlanTest(RabbitmqTest):
    def test_a_plan_changes_nothing(self):
        code, plan = self.rabbitmq("plan", "--queue", "mail", "--retry", STEPS)
        self.assertEqual(code, 0)
        self.assertEqual({each["state"] for each in plan["queues"] + plan["exchanges"]}, {"missing"})
        self.assertEqual(self.queues(), {})

    def test_what_was_applied_is_there_and_applying_again_changes_nothing(self):
        _, plan = self.rabbitmq("plan", "--queue", "mail", "--retry", STEPS)
        code, applied = self.rabbitmq("apply", "--queue", "mail", "--retry", STEPS)
        self.assertEqual((code, applied["there"]), (0, 0))
        self.assertEqual(sorted(self.queues()), sorted(each["name"] for each in plan["queues"]))
        _, plan = self.rabbitmq("plan", "--queue", "mail", "--retry", STEPS)
        self.assertEqual((plan["missing"], plan["differing"]), (0, 0))
        code, applied = self.rabbitmq("apply", "--queue", "mail", "--retry", STEPS)
        self.assertEqual((code, applied["declared"]), (0, 0))
        self.assertEqual(self.findings("--queue", "mail", "--retry", STEPS), [])

    def test_a_job_finds_its_way_through_what_was_applied(self):
        self.bide("rabbitmq", "apply", "--url", self.url, "--queue", "mail", "--delays-up-to", "2s")
        declared = self.queues()
        self.bide("enqueue", "hello", "--queue", "mail", "--delay", "1234ms", "--url", self.url + "&declare=no")
        self.wait_until(lambda: self.queues()[f"{self.prefix}.queue.mail"] == 1)
        self.assertEqual(sorted(self.queues()), sorted(declared))
        self.assertEqual(self.queues()[f"{self.prefix}.lost"], 0)
        self.assertIn("mail", self.bide("queue", "list", "--url", self.url))

    def test_with_jitter_every_delay_up_to_the_longest_is_planned(self):
        _, exact = self.rabbitmq("plan", "--retry", "fixed(1s,x5)")
        _, jittered = self.rabbitmq("plan", "--retry", "fixed(1s,x5,jitter=0.5)")
        self.assertEqual(len([each for each in exact["queues"] if ".delay." in each["name"]]), 3)
        # 1500 ms is 0x5dc: five queues of level 2, fifteen each of the levels below.
        self.assertEqual(len([each for each in jittered["queues"] if ".delay." in each["name"]]), 35)


class DriftTest(RabbitmqTest):
    def test_other_arguments_are_found_before_the_server_refuses_them(self):
        self.bide("rabbitmq", "apply", "--queue", "mail", "--url", self.url + "&max_length=5&delivery_limit=7")
        found = {each["text"].split()[0]: each for each in self.findings("--queue", "mail", check="arguments")}
        self.assertEqual(sorted(found), ["x-delivery-limit"])
        self.assertIn("delivery_limit=7", found["x-delivery-limit"]["remedy"])
        code, plan = self.rabbitmq("plan", "--queue", "mail")
        self.assertEqual((code, plan["differing"]), (78, 1))
        before = sorted(self.queues())
        self.assert_fails(78, "PRECONDITION_FAILED", "rabbitmq", "apply", "--queue", "mail", "--queue", "new", "--url",
                          self.url)
        self.assertEqual(sorted(self.queues()), before)

    def test_a_queue_that_would_lose_jobs_is_named_with_every_reason(self):
        name = f"{self.prefix}.delay.3.2"
        self.bide("rabbitmq", "apply", "--delays", "10s", "--url", self.url)
        NODE.delete_queue(name)
        before = sorted(self.queues())
        NODE.declare_queue(name, {"x-queue-type": "quorum", "x-message-ttl": 9000,
                                  "x-dead-letter-exchange": f"{self.prefix}.delay.2"})
        texts = [each["text"] for each in self.findings(check="arguments") if each["about"] == name]
        self.assertEqual(sorted(text.split()[0] for text in texts),
                         ["x-dead-letter-strategy", "x-max-length", "x-message-ttl", "x-overflow"])
        self.assertTrue(any("'9000', wanted is '8192'" in text for text in texts), texts)
        # Nothing else was made.
        self.assertEqual(sorted(self.queues()), sorted([*before, name]))

    def test_limits_of_queues_that_are_there_are_warned_of_and_obeyed(self):
        self.bide("rabbitmq", "apply", "--url", self.url)
        self.declare_with_a_limit("mail", 100)
        NODE.declare_queue(f"{self.prefix}.dead.mail", {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000_000})
        url = self.url + "&dead_retention=1d"
        self.assertEqual(self.findings("--queue", "mail", url=url), [])
        found = self.findings("--queue", "mail", check="arguments", url=url, weight="warning")
        self.assertEqual(sorted((each["about"].split(".")[-2], each["text"].split()[0]) for each in found),
                         [("dead", "x-max-length"), ("dead", "x-message-ttl"), ("dead", "x-overflow"),
                          ("queue", "x-max-length")])
        code, plan = self.rabbitmq("plan", "--queue", "mail", url=url)
        self.assertEqual((code, plan["differing"]), (0, 0))
        self.bide("rabbitmq", "apply", "--queue", "mail", "--url", url)
        self.bide("enqueue", "hello", "--queue", "mail", "--url", url)

    def test_what_new_servers_refuse_is_named(self):
        NODE.declare_queue(f"{self.prefix}.queue.old", {"x-queue-mode": "lazy", "x-max-length": 10_000_000,
                                                        "x-overflow": "reject-publish"})
        NODE.declare_queue(f"{self.prefix}.queue.gone", {}, durable=False)
        found = self.findings("--queue", "old", "--queue", "gone", check="arguments",
                              url=self.url + "&queue_type=classic")
        texts = "\n".join(each["text"] for each in found)
        self.assertIn("x-queue-mode is 'lazy'", texts)
        self.assertIn("durable is 'false'", texts)
        self.assertIn("RabbitMQ 4", texts)

    def test_nothing_is_planned_that_new_servers_refuse(self):
        _, plan = self.rabbitmq("plan", "--queue", "mail", "--retry", STEPS, "--delays", "3650d")
        refused = {"x-queue-mode", "x-ha-policy", "x-queue-master-locator", "x-max-in-memory-length",
                   "x-max-in-memory-bytes"}
        for queue in plan["queues"]:
            self.assertEqual(refused & set(queue["arguments"]), set(), queue)


class LimitTest(RabbitmqTest):
    def test_a_full_queue_refuses_new_jobs_delayed_ones_too_and_others_go_on(self):
        url = self.url + "&max_length=2"
        for _ in range(2):
            self.bide("enqueue", "now", "--queue", "mail", "--url", url)
        for more in ([], ["--delay", "1h"]):
            self.assert_fails(75, "queue 'mail' is full", "enqueue", "now", "--queue", "mail", *more, "--url", url)
        self.bide("enqueue", "now", "--queue", "other", "--url", url)
        self.assertEqual(len(self.findings(check="full", url=url)), 1)


class TroubleTest(RabbitmqTest):
    def test_a_message_that_has_lost_its_way_is_found(self):
        self.bide("rabbitmq", "apply", "--queue", "mail", "--delays", "1s", "--url", self.url)
        self.assertEqual(self.findings(check="lost"), [])
        NODE.delete_queue(f"{self.prefix}.queue.mail")
        self.bide("enqueue", "hello", "--queue", "mail", "--delay", "1s", "--url", self.url + "&declare=no")
        self.wait_until(lambda: self.queues()[f"{self.prefix}.lost"] == 1)
        [lost] = self.findings(check="lost")
        self.assertIn("of kind hello, on its way to", lost["text"])
        # It was only looked at.
        self.assertEqual(self.queues()[f"{self.prefix}.lost"], 1)
        self.assertEqual(len(self.findings(check="lost")), 1)

    def test_a_level_that_does_not_pass_jobs_on_is_found_and_not_collected(self):
        # So coarse that every delay is one visit to one queue.
        unbounded = self.url + "&max_length=0&patience=2s&precision=4096ms"
        url = unbounded.replace("max_length=0", "max_length=1")
        level = f"{self.prefix}.delay.3.1"
        self.bide("rabbitmq", "apply", "--url", url)
        self.declare_with_a_limit("mail", 1)
        # The server counts with a lag: the queue is full when it refuses a job.
        self.wait_until(lambda: self.run_bide("enqueue", "now", "--queue", "mail", "--url", unbounded)[0] == 75)
        for _ in range(40):
            self.bide("enqueue", "late", "--queue", "mail", "--delay", "1s", "--url", unbounded)
        self.wait_until(lambda: any(each["about"] == level for each in self.findings(check="passing", url=url)))
        self.assertEqual(len(self.findings("--queue", "mail", check="full", url=url)), 1)
        _, collected = self.rabbitmq("gc", "--while-stopped", "--queue", "mail", url=url)
        self.assertEqual(collected["removed"], [])
        self.assertIn("full", collected["kept"][0]["why"])
        self.assertIn(level, self.queues())

    def test_a_server_that_takes_no_messages_is_noticed(self):
        self.bide("rabbitmq", "apply", "--url", self.url)
        NODE.set_memory_alarm(True)
        try:
            # The server looks at its memory every few seconds.
            self.wait_until(lambda: self.findings(check="alarm"))
            self.assertIn("memory", self.findings(check="alarm")[0]["text"])
        finally:
            NODE.set_memory_alarm(False)
        self.wait_until(lambda: self.findings() == [])

    def test_time_limits_are_compared_with_the_consumer_timeout(self):
        self.bide("rabbitmq", "apply", "--url", self.url)
        self.assertEqual(self.findings("--time-limit", "10m"), [])
        self.assertEqual(len(self.findings("--time-limit", "2h", check="consumer_timeout")), 1)
        self.assertEqual(self.findings("--time-limit", "2h", "--consumer-timeout", "3h"), [])


class GcTest(RabbitmqTest):
    def test_nothing_is_removed_that_a_job_may_still_need(self):
        self.bide("rabbitmq", "apply", "--url", self.url, "--delays", "1h,10h")
        self.bide("enqueue", "hello", "--queue", "mail", "--delay", "1h", "--url", self.url)
        before = sorted(self.queues())
        _, dry = self.rabbitmq("gc", "--dry-run")
        self.assertEqual(sorted(self.queues()), before)
        code, done = self.rabbitmq("gc", "--while-stopped")
        self.assertEqual((code, done["removed"]), (0, dry["removed"]))
        # The hour begins in a queue of level 5. What comes before it, or beside it, is of no use to that job.
        self.assertEqual(done["removed"], [f"{self.prefix}.delay.6.2", f"{self.prefix}.delay.5.2"])
        why = {each["queue"]: each["why"] for each in done["kept"]}
        self.assertIn("1 jobs wait", why[f"{self.prefix}.delay.5.3"])
        self.assertIn(f"{self.prefix}.delay.5.3", why[f"{self.prefix}.delay.4.6"])
        self.assertEqual(set(before) - set(self.queues()), set(done["removed"]))

    def test_idle_queues_are_removed_and_made_again_when_needed(self):
        self.bide("rabbitmq", "apply", "--url", self.url, "--queue", "mail", "--delays", "1s")
        _, done = self.rabbitmq("gc", "--while-stopped")
        self.assertEqual((len(done["removed"]), done["kept"]), (3, []))
        self.assertFalse([name for name in self.queues() if ".delay." in name])
        self.bide("enqueue", "hello", "--queue", "mail", "--delay", "1s", "--url", self.url)
        self.wait_until(lambda: self.queues()[f"{self.prefix}.queue.mail"] == 1)
        self.assertEqual(self.findings(), [])


class ErrorTest(RabbitmqTest):
    def test_mistakes_are_told_with_their_exit_codes(self):
        self.assert_fails(64, "--while-stopped", "rabbitmq", "gc", "--url", self.url)
        self.assert_fails(64, "--delays: invalid duration", "rabbitmq", "plan", "--delays", "1s,x", "--url", self.url)
        self.assert_fails(64, "--queue: invalid name", "rabbitmq", "plan", "--queue", "a b", "--url", self.url)
        self.assert_fails(64, "--retry", "rabbitmq", "plan", "--retry", "often", "--url", self.url)
        self.assert_fails(78, "amqp://", "rabbitmq", "plan", "--url", "bide:./data")
        self.assert_fails(78, "did you mean 'prefix'?", "rabbitmq", "plan", "--url", NODE.url + "?prefx=a")
        self.assert_fails(78, "compat=sneakers", "rabbitmq", "plan", "--url", NODE.url + "?compat=sneakers")
        self.assert_fails(78, "bide bench engine", "bench", "broker", "--url", "bide:./data")

    def test_the_server_s_refusals_are_in_its_own_words_and_without_the_password(self):
        wrong = NODE.url.replace("guest:guest", "guest:secret-word")
        for words in (["rabbitmq", "doctor"], ["rabbitmq", "plan"], ["rabbitmq", "lost"], ["enqueue", "hello"],
                      ["work", "--shell", "true"], ["queue", "list"], ["bench", "broker"]):
            code, out, err = self.run_bide(*words, "--url", wrong)
            self.assertEqual(code, 77, err)
            self.assertIn("ACCESS_REFUSED", err)
            self.assertNotIn("secret-word", out + err)
        for words in (["rabbitmq", "plan"], ["enqueue", "hello"]):
            self.assert_fails(77, "no-such-vhost", *words, "--url", NODE.url + "/no-such-vhost")
        port = rabbitmq_node.free_port()
        code, out, err = self.run_bide("enqueue", "hello", "--url", f"amqp://guest:secret-word@127.0.0.1:{port}")
        self.assertEqual(code, 69, err)
        self.assertIn(str(port), err)
        self.assertNotIn("secret-word", out + err)


class LostTest(RabbitmqTest):
    def lost(self, *words):
        code, answer = self.rabbitmq("lost", *words)
        self.assertEqual(code, 0)
        return answer["messages"]

    def lose(self, kind, queue):
        """A job whose queue is gone when it becomes due; its id."""
        before = self.queues().get(f"{self.prefix}.lost", 0)
        self.bide("rabbitmq", "apply", "--queue", queue, "--delays", "1s", "--url", self.url)
        NODE.delete_queue(f"{self.prefix}.queue.{queue}")
        told = self.bide("enqueue", kind, "--queue", queue, "--delay", "1s", "--url", self.url + "&declare=no")
        self.wait_until(lambda: self.queues()[f"{self.prefix}.lost"] == before + 1)
        return told

    def test_lost_messages_are_listed_and_stay_where_they_are(self):
        self.assertEqual(self.lost(), [])
        told = self.lose("hello", "mail")
        for _ in range(2):
            [message] = self.lost()
            self.assertEqual((message["kind"], message["queue"], message["why"]), ("hello", "mail", "no_way"))
        self.assertIn(message["id"], told)
        self.assertEqual(self.lost("--queue", "other"), [])
        self.assertIn("no_way", self.bide("rabbitmq", "lost", "--url", self.url))

    def test_what_is_requeued_runs_and_is_lost_no_more(self):
        self.lose("hello", "mail")
        self.lose("other", "images")
        code, moved = self.rabbitmq("lost-requeue", "--queue", "mail")
        self.assertEqual((code, [each["ok"] for each in moved["messages"]]), (0, [True]))
        self.wait_until(lambda: self.queues()[f"{self.prefix}.queue.mail"] == 1)
        self.assertEqual([each["kind"] for each in self.lost()], ["other"])
        self.bide("work", "--drain", "--shell", "true", "--queue", "mail", "--url", self.url)
        self.wait_until(lambda: self.queues()[f"{self.prefix}.queue.mail"] == 0)
        code, moved = self.rabbitmq("lost-requeue", self.lost()[0]["id"], "--to", "mail")
        self.wait_until(lambda: self.queues()[f"{self.prefix}.queue.mail"] == 1)
        self.assertEqual(self.lost(), [])

    def test_deleting_is_confirmed(self):
        self.lose("hello", "mail")
        self.assert_fails(64, "which ones?", "rabbitmq", "lost-delete", "--url", self.url)
        self.assert_fails(64, "1 lost messages", "rabbitmq", "lost-delete", "--all", "--url", self.url)
        self.assertEqual(len(self.lost()), 1)
        code, gone = self.rabbitmq("lost-delete", "--all", "--yes")
        self.assertEqual((code, len(gone["messages"])), (0, 1))
        self.wait_until(lambda: self.queues()[f"{self.prefix}.lost"] == 0)

    def test_a_retry_whose_wait_has_no_queue_is_fetched_when_it_is_due(self):
        self.bide("rabbitmq", "apply", "--queue", "default", "--delays", "10s", "--url", self.url)
        # 10 s are 0x2710 ms: the first of its hops.
        NODE.delete_queue(f"{self.prefix}.delay.3.2")
        url = self.url + "&declare=no"
        self.bide("enqueue", "flaky", "--retry", "steps(10s)", "--url", url)
        log = os.path.join(self.folder, "log")
        worker = self.start("work", "--shell", f"echo run >> {log}; [ $(wc -l < {log}) -gt 1 ]", "--url", url)
        self.addCleanup(worker.communicate)
        self.addCleanup(worker.terminate)
        self.wait_until(lambda: self.queues()[f"{self.prefix}.lost"] == 1)
        self.wait_until(lambda: len(lines_of(log)) == 2)
        self.wait_until(lambda: self.queues()[f"{self.prefix}.lost"] == 0)


class LongJobTest(RabbitmqTest):
    """Jobs that outlast the server's consumer_timeout. BIDE_LONG_JOB=20,60 is its length and theirs, in seconds."""

    def test_a_job_runs_once_though_it_outlasts_the_timeout_and_two_processes_want_it(self):
        timeout, length = (int(text) for text in os.environ.get("BIDE_LONG_JOB", "6,15").split(","))
        jobs = 6
        NODE.set_consumer_timeout(timeout * 1000)
        self.addCleanup(NODE.set_consumer_timeout, 30 * 60 * 1000)
        url = self.url + f"&consumer_timeout={timeout}s"
        log = os.path.join(self.folder, "log")
        script = f"body=$(cat); echo start $body >> {log}; sleep {length}; echo end $body >> {log}"
        for number in range(jobs):
            self.bide("enqueue", "long", str(number), "--url", url)
        workers = [self.start("work", "--shell", script, "--concurrency", "3", "--url", url) for _ in range(2)]
        for worker in workers:
            self.addCleanup(worker.communicate)
            self.addCleanup(worker.terminate)
        self.wait_until(lambda: sum(line.startswith("end") for line in lines_of(log)) == jobs, seconds=60 + 6 * length)
        # The copies that held them become due.
        self.wait_until(lambda: sum(self.queues().values()) <= self.queues()[f"{self.prefix}.notices"], 60 + 2 * timeout)
        self.assertEqual(sorted(lines_of(log)), sorted(f"{what} {number}" for what in ("start", "end") for number in range(jobs)))
        self.assertEqual(self.bide_json("dead", "list", "--url", url)["jobs"], [])


class TlsTest(RabbitmqTest):
    """A listener with a certificate of localhost, signed by an authority of the test's own."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if shutil.which("openssl") is None:
            raise unittest.SkipTest("openssl is not installed")
        folder = tempfile.TemporaryDirectory(prefix="bide-tls-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for name in ("ca", "other-ca"):
            cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-keyout", cls.file(f"{name}.key"), "-out", cls.file(f"{name}.pem"))
        cls.port = cls.listen("localhost")

    @classmethod
    def file(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def openssl(cls, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)

    @classmethod
    def listen(cls, host):
        """A port on which the node shows a certificate of that host."""
        key, request, certificate = cls.file(f"{host}.key"), cls.file(f"{host}.csr"), cls.file(f"{host}.pem")
        with open(cls.file(f"{host}.ext"), "w", encoding="utf-8") as file:
            file.write(f"subjectAltName=DNS:{host}\n")
        cls.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={host}",
                    "-keyout", key, "-out", request)
        cls.openssl("x509", "-req", "-in", request, "-CA", cls.file("ca.pem"), "-CAkey", cls.file("ca.key"),
                    "-CAcreateserial", "-days", "2", "-extfile", cls.file(f"{host}.ext"), "-out", certificate)
        port = rabbitmq_node.free_port()
        NODE.listen_with_tls(port, certificate, key)
        return port

    def tls_url(self, ca="ca", port=None, host="localhost", more=""):
        ca_file = f"&ca={self.file(ca)}.pem" if ca else ""
        return f"amqps://guest:guest@{host}:{port or self.port}?prefix={self.prefix}{ca_file}{more}"

    def test_jobs_go_over_tls(self):
        url = self.tls_url()
        self.bide("enqueue", "hello", "--url", url)
        self.bide("enqueue", "later", "--delay", "500ms", "--url", url)
        self.wait_until(lambda: self.queues()[f"{self.prefix}.queue.default"] == 2)
        self.bide("work", "--drain", "--shell", "true", "--url", url)
        self.wait_until(lambda: self.queues()[f"{self.prefix}.queue.default"] == 0)
        self.assertEqual(self.findings(url=url), [])

    def test_a_server_that_cannot_prove_who_it_is_is_refused(self):
        for url in (self.tls_url(ca="other-ca"), self.tls_url(ca="")):
            code, out, err = self.run_bide("enqueue", "hello", "--url", url)
            self.assertEqual(code, 69, err)
            self.assertIn("verif", err)
            self.assertNotIn("guest:guest", out + err)
        other = self.listen("example.org")
        code, _, err = self.run_bide("enqueue", "hello", "--url", self.tls_url(port=other))
        self.assertEqual(code, 69, err)
        self.assertIn("host", err)
        # Nobody has checked who it is, and it was said so.
        self.bide("enqueue", "hello", "--url", self.tls_url(ca="", port=other, more="&verify=no"))

    def test_mistakes_about_tls_are_told(self):
        missing = self.file("no-such.pem")
        self.assert_fails(78, "no-such.pem", "enqueue", "hello", "--url", self.tls_url(ca="no-such"))
        self.assert_fails(78, "only with amqps", "enqueue", "hello", "--url", f"{self.url}&ca={missing}")
        # TLS to a port that does not speak it.
        code, _, err = self.run_bide("enqueue", "hello", "--url", self.tls_url(port=NODE.port))
        self.assertEqual(code, 69, err)
        # And the other way round.
        code, _, err = self.run_bide("enqueue", "hello", "--url", f"amqp://guest:guest@localhost:{self.port}")
        self.assertEqual(code, 69, err)


if __name__ == "__main__":
    command.main()
