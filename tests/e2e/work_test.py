"""bide work: programs as handlers."""

import json
import os
import signal
import time

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

    def test_a_program_that_is_not_there_is_a_failed_attempt(self):
        job_id = self.bide("enqueue", "k", "--retry", "none").strip()
        self.work("--exec", "./gone")
        self.assertIn("exit status 127", self.bide_json("job", "show", job_id)["errors"][-1]["text"])

    def test_the_whole_process_group_is_stopped_at_the_time_limit(self):
        job_id = self.bide("enqueue", "k", "--retry", "none", "--ttr", "300ms").strip()
        self.work("--shell", "sleep 1000 & echo $! > pid; wait")
        job = self.bide_json("job", "show", job_id)
        self.assertEqual((job["state"], job["counts"]["timed_out"]), ("dead", 1))
        self.assert_ends()

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
        deadline = time.monotonic() + 60
        while not os.path.exists(f"{self.folder}/started") and time.monotonic() < deadline:
            time.sleep(0.02)
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=60)
        self.assertEqual(worker.returncode, 0)
        job = self.bide_json("job", "show", job_id)
        self.assertIn(job["state"], ("scheduled", "ready"))
        self.assertEqual(sum(job["counts"].values()), 0)
        self.assert_ends()

    def test_a_killed_worker_takes_its_program_with_it(self):
        self.bide("enqueue", "k")
        worker = self.start("work", "--shell", "echo $$ > pid; touch started; exec sleep 1000")
        deadline = time.monotonic() + 60
        while not os.path.exists(f"{self.folder}/started") and time.monotonic() < deadline:
            time.sleep(0.02)
        worker.send_signal(signal.SIGKILL)
        worker.communicate(timeout=60)
        self.assert_ends()

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
