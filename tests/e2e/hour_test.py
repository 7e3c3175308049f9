"""An hour of a person who looks after a store: 50 000 jobs, 300 of them dead by three errors, and a worker that goes on."""

import json
import os
import signal

import command

JOBS = 50_000
DEAD = 300
KINDS = ("newsletter", "report", "invoice")

HANDLER = r"""
case $BIDE_KIND in
  charge) echo "card 4$RANDOM$$ was declined" >&2;;
  mail) echo "connect to 10.0.0.$$:25 timed out after $$ ms" >&2;;
  *) echo "no address for customer '$$'" >&2;;
esac
exit 65
"""


class HourTest(command.CommandTest):
    def enqueue_all(self, jobs):
        lines = "".join(json.dumps(job) + "\n" for job in jobs)
        self.bide("enqueue", "--ndjson", "-", given=lines.encode())

    def dead(self):
        return self.bide_json("dead", "groups")

    def test_the_hour(self):
        # 300 dead ones by three errors, each told differently every time.
        broken = ("charge", "mail", "ship")
        self.enqueue_all({"kind": broken[i % 3], "queue": "shop", "retry": "none", "body_text": str(i)} for i in range(DEAD))
        self.bide("work", "--queue", "shop", "--shell", HANDLER, "--drain", "--quiet")
        # The others: some are to be run now, some later.
        self.enqueue_all({"kind": KINDS[i % 3], "queue": "bulk", "body_text": "x" * 100, "delay": "1h" if i % 3 else "0s"}
                         for i in range(JOBS - DEAD))
        self.assertEqual(self.bide_json("audit")["accepted"], JOBS)
        worker = self.start("work", "--queue", "bulk", "--shell", "sleep 0.05", "--concurrency", "2", "--quiet")
        try:
            self.look_after(broken)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=60)
        self.assertEqual(worker.returncode, 0)
        audit = self.bide_json("audit")
        self.assertTrue(audit["ok"], audit)
        self.assertEqual(audit["accepted"], JOBS)

    def look_after(self, broken):
        # The groups are found.
        found = self.dead()
        self.assertEqual((found["looked_at"], found["complete"]), (DEAD, True))
        self.assertEqual(sorted((group["kind"], group["count"]) for group in found["groups"]),
                         [(kind, DEAD // 3) for kind in broken])
        code, report, _ = self.run_bide("doctor")
        self.assertEqual(code, 1)
        self.assertRegex(report, r"300 jobs of queue shop are dead: 100 of \w+, .*; 100 of \w+, .*; 100 of \w+, ")
        mail = next(group for group in found["groups"] if group["kind"] == "mail")
        self.assertIn("timed out after # ms", mail["error"])

        # A backup while all of it goes on.
        saved = self.bide_json("store", "backup", "data", "saved")
        self.assertGreater(saved["live_jobs"], JOBS // 2)

        # One class is replayed, by a job of it.
        self.assertEqual(self.bide_json("dead", "replay", "--like", mail["example"], "--dry-run")["would_replay"], DEAD // 3)
        self.assertEqual(len(self.bide_json("dead", "replay", "--like", mail["example"])["jobs"]), DEAD // 3)
        self.bide("work", "--queue", "shop", "--shell", "exit 0", "--drain", "--quiet")
        self.assertEqual([group["count"] for group in self.dead()["groups"]], [DEAD // 3] * 2)
        # What did that job do?
        done = self.bide_json("job", "show", mail["example"])
        self.assertEqual((done["state"], done["attempts"]), ("done", 1))
        self.assertTrue(done["body"].isdigit())
        self.assertIn("timed out after", json.dumps(done["errors"]))

        # One kind is cancelled.
        matched = self.bide_json("job", "cancel", "--kind", "report", "--dry-run")["would_cancel"]
        cancelled = self.bide_json("job", "cancel", "--kind", "report", "--yes")
        self.assertEqual((cancelled["succeeded"], cancelled["failed"]), (matched, 0))
        self.assertGreater(matched, JOBS // 4)

        # A delay is changed for what matches.
        later = self.bide_json("job", "reschedule", "--kind", "invoice", "--state", "scheduled", "--delay", "3h", "--yes")
        self.assertEqual(later["failed"], 0)
        self.assertGreater(later["succeeded"], JOBS // 4)

        # A class is deleted, the last one is edited and replayed.
        groups = {group["kind"]: group for group in self.dead()["groups"]}
        self.bide("dead", "delete", "--like", groups["charge"]["id"], "--yes")
        self.edit_and_replay(groups["ship"]["example"])

        # The backup is restored into a second store, whose audit agrees.
        self.bide("store", "check", "saved")
        self.bide("store", "restore", "saved", "second")
        second = self.bide_json("audit", "--url", "bide:second")
        self.assertTrue(second["ok"], second)
        self.assertEqual((second["accepted"], second["live"]), (JOBS, saved["live_jobs"]))
        self.assertEqual(self.bide_json("dead", "groups", "--url", "bide:second")["looked_at"], DEAD)
        # And another one, which copies only what has happened since.
        again = self.bide_json("store", "backup", "data", "saved")
        self.assertTrue(os.path.exists(f"{self.folder}/saved/journal"))
        self.assertLess(again["live_jobs"], saved["live_jobs"])

    def edit_and_replay(self, job):
        self.bide("job", "edit", job, "--body", "another")
        self.assertEqual(self.bide_json("job", "show", job)["body"], "another")
        self.bide("dead", "replay", job)
        self.bide("work", "--queue", "shop", "--shell", "cat", "--drain", "--quiet")
        self.assertEqual(self.bide_json("job", "show", job)["state"], "done")


if __name__ == "__main__":
    command.main()
