"""bide work: programs as handlers."""

import json
import os
import resource
import signal
import time
import urllib.request

import command


class WorkTest(command.CommandTest):
    def work(self, *words):
        self.bide("work", "--drain", "--quiet", *words)

    def script(self, text):
        path = f"{self.folder}/handler"
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return "./handler"

    def test_a_program_gets_body_and_environment_and_its_output_is_the_result(self):
        job_id = self.bide("enqueue", "greet", "hello", "--queue", "q", "--header", "trace-id=abc").strip()
        handler = self.script('printf "%s %s %s %s %s " "$BIDE_JOB_ID" "$BIDE_KIND" "$BIDE_ATTEMPT" '
                              '"$BIDE_HEADER_TRACE_ID" "$1"; cat')
        self.work("--exec", handler, "--queue", "q", "--", "argument")
        job = self.bide_json("job", "show", job_id)
        self.assertEqual((job["state"], job["result"]), ("done", f"{job_id} greet 1 abc argument hello"))

    def test_exit_codes_choose_the_outcome(self):
        for code in (0, 65, 75, 3):
            self.bide("enqueue", "k", str(code), "--retry", "fixed(1ms,x2)")
        self.work("--shell", 'read code; echo "said $code" >&2; exit $code')
        jobs = {job.get("body", "0"): job for job in self.bide_json("job", "list")["jobs"]}
        self.assertEqual({body: job["state"] for body, job in jobs.items()},
                         {"0": "done", "65": "dead", "75": "dead", "3": "dead"})
        self.assertEqual({body: job["attempts"] for body, job in jobs.items()}, {"0": 1, "65": 1, "75": 2, "3": 2})
        self.assertEqual(jobs["65"]["dead_reason"], "rejected")
        self.assertEqual(jobs["3"]["dead_reason"], "exhausted")
        self.assertEqual(jobs["3"]["errors"][-1]["text"], "exit status 3: said 3")

    def test_a_crash_is_told_with_its_signal(self):
        job_id = self.bide("enqueue", "k", "--retry", "none").strip()
        self.work("--shell", "kill -SEGV $$")
        self.assertIn("killed by SIGSEGV", self.bide_json("job", "show", job_id)["errors"][-1]["text"])

    def test_a_program_that_goes_away_costs_no_attempt(self):
        for _ in range(3):
            self.bide("enqueue", "k", "--retry", "none")
        code, _, err = self.run_bide("work", "--drain", "--concurrency", "1", "--exec", self.script("rm handler"))
        self.assertEqual(code, 66, err)
        self.assertIn("cannot be started: No such file", err)
        jobs = self.bide_json("job", "list")["jobs"]
        self.assertEqual(sorted(job["state"] for job in jobs)[0], "done")
        for job in jobs[:2]:
            self.assertEqual(sum(job["counts"].values()), 0)

    def test_running_out_of_descriptors_costs_no_attempt(self):
        """With every limit either nothing begins, or the job is given back, or it is done.

        The store needs 13 for itself: with fewer it waits for one to become free.
        """
        outcomes = set()
        for most in range(14, 32):
            job_id = self.bide("enqueue", "k", "--retry", "none").strip()
            code, _, err = self.run_bide("work", "--drain", "--concurrency", "1", "--shell", "exit 0",
                                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
            job = self.bide_json("job", "show", job_id)
            if code == 0:
                self.assertEqual(job["state"], "done", err)
            else:
                self.assertEqual(sum(job["counts"].values()), 0, f"{most}: {code} {err}")
                self.bide("job", "cancel", job_id)
            outcomes.add("given back" if "no attempt was charged" in err else code)
        self.assertLessEqual({0, "given back"}, outcomes)

    def test_the_end_of_a_program_is_seen_though_its_signal_is_ignored(self):
        job_id = self.bide("enqueue", "k").strip()
        code, _, err = self.run_bide("work", "--drain", "--shell", "exit 0",
                                     preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual((code, self.bide_json("job", "show", job_id)["state"]), (0, "done"), err)

    def test_a_worker_without_standard_streams_gives_its_programs_theirs(self):
        job_id = self.bide("enqueue", "k", "hello").strip()
        self.run_bide("work", "--drain", "--shell", "cat; echo said >&2", preexec_fn=lambda: os.closerange(0, 3))
        self.assertEqual(self.bide_json("job", "show", job_id)["result"], "hello")

    def test_the_whole_body_is_there_before_the_program_starts(self):
        """So that a program whose worker dies does not take a part of it for all."""
        job_id = self.bide("enqueue", "k", "-", given=b"x" * 5_000_000).strip()
        self.work("--shell", "kill -STOP $PPID; wc -c; kill -CONT $PPID")
        self.assertEqual(self.bide_json("job", "show", job_id)["result"].strip(), "5000000")

    def test_a_result_that_is_too_large_is_told_as_what_became_of_the_job(self):
        self.bide("enqueue", "k", "--retry", "none")
        _, _, err = self.run_bide("work", "--drain", "--shell", "head -c 30000000 /dev/zero")
        self.assertIn("dead, exhausted: the result has 30000000 bytes", err)
        self.assertNotIn("done", err)

    def test_what_a_program_says_cannot_spoil_the_terminal(self):
        self.bide("enqueue", "k", "--retry", "none")
        _, _, err = self.run_bide("work", "--drain", "--shell", r"printf '\033[31m\007red\nbide: error: forged' >&2; exit 1")
        self.assertNotRegex(err, r"[\x00-\x09\x0b-\x1f\x7f]")
        self.assertNotIn("\nbide: error: forged", err)
        self.assertNotRegex(self.bide("dead", "list"), r"[\x00-\x09\x0b-\x1f\x7f]")

    def test_events_can_be_had_as_json(self):
        self.bide("enqueue", "good")
        self.bide("enqueue", "bad", "--retry", "none")
        lines = self.bide("work", "--drain", "--json", "--shell", "test $BIDE_KIND = good").splitlines()
        events = [json.loads(line) for line in lines]
        self.assertEqual(sorted((event["kind"], event["event"]) for event in events),
                         [("bad", "dead"), ("bad", "started"), ("good", "done"), ("good", "started")])

    def test_draining_ends_with_jobs_of_other_kinds_left_and_says_so(self):
        mine = self.bide("enqueue", "mine").strip()
        other = [self.bide("enqueue", "other").strip() for _ in range(3)]
        code, _, err = self.run_bide("work", "--drain", "--kind", "mine", "--shell", "exit 0")
        self.assertEqual(code, 0)
        self.assertEqual(self.bide_json("job", "show", mine)["state"], "done")
        self.assertIn("left in queue default: 3 jobs of kind other", err)
        self.assertNotIn("are left to other workers", err)  # None of them came.
        for job_id in other:
            job = self.bide_json("job", "show", job_id)
            self.assertEqual((job["state"], sum(job["counts"].values())), ("ready", 0))
        self.work("--kind", "other", "--shell", "exit 0")
        self.assertEqual(self.bide_json("audit")["done"], 4)

    def test_draining_leaves_the_jobs_of_a_paused_queue_and_says_so(self):
        self.bide("enqueue", "k")
        self.bide("queue", "pause", "default")
        code, _, err = self.run_bide("work", "--drain", "--shell", "exit 0")
        self.assertEqual(code, 0)
        self.assertIn("left in queue default: 1 job that wait, because the queue is paused", err)

    def test_draining_gives_the_last_program_its_time_between_term_and_kill(self):
        self.bide("enqueue", "k", "--retry", "none", "--time-limit", "2s")
        self.work("--exec", self.script("trap 'sleep 0.5; touch cleaned; exit 0' TERM\nsleep 100 & wait"))
        self.assertTrue(os.path.exists(f"{self.folder}/cleaned"))

    def test_the_whole_process_group_is_stopped_at_the_time_limit(self):
        job_id = self.bide("enqueue", "k", "--retry", "none", "--time-limit", "2s").strip()
        self.work("--shell", "sleep 1000 & echo $! > pid; wait")
        job = self.bide_json("job", "show", job_id)
        self.assertEqual((job["state"], job["counts"]["timed_out"]), ("dead", 1))
        self.assert_ends()

    def wait_until_started(self):
        """Until a program has made the file `started`."""
        deadline = time.monotonic() + 60
        while not os.path.exists(f"{self.folder}/started"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def assert_ends(self):
        """The process that wrote its number to the file `pid` is gone, or soon will be."""
        with open(f"{self.folder}/pid", encoding="utf-8") as file:
            pid = int(file.read())
        deadline = time.monotonic() + 30
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(is_alive(pid))

    def test_memory_can_be_limited(self):
        job_id = self.bide("enqueue", "k", "--retry", "none").strip()
        self.work("--memory", "300M", "--exec", "python3", "--", "-c", "bytearray(1 << 30)")
        self.assertIn("MemoryError", self.bide_json("job", "show", job_id)["errors"][-1]["text"])

    def test_a_kind_nobody_asked_for_is_left_alone(self):
        mine = self.bide("enqueue", "mine").strip()
        other = self.bide("enqueue", "other").strip()
        worker = self.start("work", "--shell", "exit 0", "--kind", "mine")
        try:
            read_until(worker.stderr, b"mine", b"done")
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=60)
        self.assertEqual(worker.returncode, 0)
        self.assertEqual(self.bide_json("job", "show", mine)["state"], "done")
        left = self.bide_json("job", "show", other)
        self.assertIn(left["state"], ("scheduled", "ready"))
        self.assertEqual(left["counts"], {"failed": 0, "timed_out": 0, "lost": 0, "crashed": 0})

    def test_sigterm_returns_what_is_running_uncharged(self):
        job_id = self.bide("enqueue", "k").strip()
        worker = self.start("work", "--shell", "echo $$ > pid; touch started; sleep 1000", "--grace", "200ms")
        self.wait_until_started()
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=60)
        self.assertEqual(worker.returncode, 0)
        job = self.bide_json("job", "show", job_id)
        self.assertIn(job["state"], ("scheduled", "ready"))
        self.assertEqual(sum(job["counts"].values()), 0)
        self.assert_ends()

    def kill_worker_of(self, shell):
        self.bide("enqueue", "k")
        worker = self.start("work", "--shell", shell)
        self.wait_until_started()
        worker.send_signal(signal.SIGKILL)
        worker.communicate(timeout=60)
        self.assert_ends()

    def test_a_killed_worker_takes_its_program_with_it(self):
        self.kill_worker_of("echo $$ > pid; touch started; exec sleep 1000")

    def test_a_killed_worker_takes_all_that_its_program_has_started(self):
        self.kill_worker_of("sleep 1000 & echo $! > pid; touch started; wait")

    def test_jobs_that_a_killed_worker_had_not_begun_with_do_not_die_with_it(self):
        for i in range(60):
            self.bide("enqueue", "k", str(i), "--retry", "none")
        handler = self.script("read number\ntest $number -lt 20 || { touch started; exec sleep 1000; }\n")
        worker = self.start("work", "--exec", handler, "--concurrency", "1")
        self.wait_until_started()
        worker.send_signal(signal.SIGKILL)
        worker.communicate(timeout=60)
        self.assertEqual([job["body"] for job in self.bide_json("dead", "list")["jobs"]], ["20"])

    def test_a_worker_tells_its_metrics(self):
        self.bide("enqueue", "count")
        worker = self.start("work", "--shell", "exit 0", "--metrics", "127.0.0.1:0", "--json")
        try:
            told = [json.loads(worker.stdout.readline()) for _ in range(3)]
            url = next(event["url"] for event in told if event["event"] == "metrics")
            wanted = 'bide_kind_jobs_finished_total{kind="count",outcome="done"} 1\n'
            text = ""
            while wanted not in text:  # The outcome is told before it is confirmed.
                with urllib.request.urlopen(url, timeout=30) as answer:
                    text = answer.read().decode()
            self.assertIn('bide_queue_jobs{queue="default",state="ready"} 0\n', text)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=60)
        self.assertEqual(worker.returncode, 0)
        self.assert_fails(64, "--metrics", "work", "--shell", "exit 0", "--metrics", "nowhere")

    def test_a_job_enqueued_and_worked_off_adds_up(self):
        for i in range(5):
            self.bide("enqueue", "k", str(i))
        self.work("--shell", "exit 0", "--concurrency", "4")
        audit = json.loads(self.bide("audit", "--json"))
        self.assertEqual((audit["ok"], audit["accepted"], audit["done"], audit["live"]), (True, 5, 5, 0))


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def read_until(stream, *words):
    """Reads lines until one of them holds all the words."""
    for line in stream:
        if all(word in line for word in words):
            return
    raise AssertionError(f"no line with {words}")


if __name__ == "__main__":
    command.main()
