"""bide dead replay with a real worker: it stops when too many fail again."""

import json
import signal

import command


class ReplayTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.switch(False)

    def switch(self, works):
        """Whether the handler of the worker succeeds from now on."""
        with open(f"{self.folder}/handler.sh", "w", encoding="utf-8") as file:
            file.write("exit 0" if works else "echo still broken >&2; exit 1")

    def kill_jobs(self, count, retry="none"):
        for i in range(count):
            self.bide("enqueue", "k", str(i), "--retry", retry)
        self.bide("work", "--shell", "exit 65", "--drain", "--quiet")
        self.assertEqual(self.dead(), count)

    def dead(self):
        return len(self.bide_json("dead", "list", "--limit", "1000")["jobs"])

    def with_worker(self, *words):
        """Replays while a worker runs; (exit code, stdout, stderr)."""
        worker = self.start("work", "--shell", ". ./handler.sh", "--quiet")
        try:
            return self.run_bide("dead", "replay", *words)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=60)
            self.assertEqual(worker.returncode, 0)

    def test_a_canary_that_dies_again_stops_it(self):
        self.kill_jobs(6)
        code, _, err = self.with_worker("--all", "--canary", "2")
        self.assertEqual(code, 1, err)
        self.assertRegex(err, r"stopped after 2 of 6 jobs, the rest stays dead: a canary failed: job \S+ is dead again: "
                              r"exit status 1: still broken")
        self.assertEqual(self.dead(), 6)

    def test_a_canary_that_fails_and_would_be_retried_for_long_stops_it_too(self):
        self.kill_jobs(3, retry="fixed(1h,x5)")
        code, _, err = self.with_worker("--all", "--canary", "1")
        self.assertEqual(code, 1, err)
        self.assertIn("failed again: exit status 1: still broken", err)
        self.assertEqual(self.dead(), 2)

    def test_after_good_canaries_the_rest_follows(self):
        self.kill_jobs(6)
        self.switch(True)
        code, out, err = self.with_worker("--all", "--canary", "2", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(len(json.loads(out)["jobs"]), 6)
        self.bide("work", "--shell", "exit 0", "--drain", "--quiet")
        self.assertEqual((self.dead(), self.bide_json("audit")["done"]), (0, 6))

    def test_at_a_rate_it_stops_when_too_many_fail_again(self):
        self.kill_jobs(60)
        code, _, err = self.with_worker("--all", "--rate", "20", "--json")
        self.assertEqual(code, 1, err)
        error = json.loads(err)["error"]
        self.assertEqual((error["code"], error["exit"]), ("failed_again", 1))
        self.assertRegex(error["message"], r"stopped after \d+ of 60 jobs.* that were tried failed again")
        self.assertEqual(self.dead(), 60)
        tried = [job for job in self.bide_json("dead", "list", "--limit", "1000")["jobs"] if job["errors"][-1]["text"] !=
                 "exit status 65"]
        self.assertGreaterEqual(len(tried), 5)
        self.assertLess(len(tried), 60)

    def test_the_share_that_stops_it_can_be_chosen(self):
        self.kill_jobs(12)
        code, _, err = self.with_worker("--all", "--rate", "40", "--stop-at", "100")
        self.assertEqual(code, 0, err)


if __name__ == "__main__":
    command.main()
