"""Schedules, from the command line and over HTTP."""

import json

import command
import running_server

NIGHTLY = ("--cron", "30 7 * * mon-fri", "--zone", "Europe/Berlin")


class NextTest(command.CommandTest):
    """What an expression says: without a store."""

    def test_an_expression_is_explained_and_its_times_are_listed(self):
        text = self.bide("schedule", "next", *NIGHTLY, "--limit", "7").splitlines()
        self.assertEqual(text[0], "at 07:30, on Monday to Friday (Europe/Berlin)")
        self.assertEqual(len(text), 8)
        for line in text[1:]:
            self.assertRegex(line, r"^  \d{4}-\d\d-\d\dT0[56]:30:00\.000Z +(Mon|Tue|Wed|Thu|Fri) \d{4}-\d\d-\d\d 07:30:00 +in ")
        answer = self.bide_json("schedule", "next", "--every", "15m", "--anchor", "2026-01-01T00:05:00Z")
        self.assertEqual(answer["text"], "every 15m")
        self.assertEqual([time[14:16] in ("05", "20", "35", "50") for time in answer["times"]], [True] * 5)

    def test_what_is_never_due_is_refused_in_one_line(self):
        next_of = ("schedule", "next")
        self.assert_fails(64, "give one of --cron EXPRESSION and --every DURATION", *next_of)
        self.assert_fails(64, "give one of", *next_of, "--cron", "@daily", "--every", "1h")
        self.assert_fails(64, "--cron: ", *next_of, "--cron", "30 7 * *")
        self.assert_fails(64, "--cron: ", *next_of, "--cron", "0 0 31 feb *")
        self.assert_fails(64, "--cron: the expression is empty", *next_of, "--cron", "")
        self.assert_fails(64, "did you mean 'Europe/Berlin'?", *next_of, "--cron", "@daily", "--zone", "Europe/Berlim")
        self.assert_fails(64, "--zone belongs to --cron", *next_of, "--every", "1h", "--zone", "Europe/Berlin")
        self.assert_fails(64, "--anchor belongs to --every", *next_of, "--cron", "@daily", "--anchor", "2026-01-01T00:00:00Z")
        self.assert_fails(64, "--every: ", *next_of, "--every", "100ms")
        self.assert_fails(64, "--limit", *next_of, "--cron", "@daily", "--limit", "0")
        self.assert_fails(64, "NAME and --cron", *next_of, "report", "--cron", "@daily")
        self.assert_fails(66, "data", *next_of, "report")
        code, _, err = self.run_bide(*next_of, "--cron", "never", "--json")
        self.assertEqual((code, json.loads(err)["error"]["code"]), (64, "invalid_cron"))


class SchedulesTest(command.CommandTest):
    URL = ()

    def put(self, *words):
        return self.bide_json("schedule", "put", *words, *self.URL)

    def schedule(self, name):
        return self.bide_json("schedule", "show", name, *self.URL)["schedule"]

    def test_a_schedule_is_put_once_however_often_it_is_said(self):
        words = ("report", "send_report", "body", *NIGHTLY, "--queue", "reports", "--overlap", "skip", "--missed", "all",
                 "--most-missed", "7", "--jitter", "5s", "--owner", "billing", "--retry", "fixed(30s,x5)")
        first = self.put(*words)
        self.assertEqual((first["name"], first["created"], first["changed"]), ("report", True, False))
        again = self.put(*words)
        self.assertEqual((again["created"], again["changed"], again["next"]), (False, False, first["next"]))
        info = self.schedule("report")
        self.assertEqual((info["cron"], info["zone"], info["missed"], info["most_missed"], info["overlap"],
                          info["jitter_ms"], info["owner"], info["paused"], info["next"]),
                         ("30 7 * * mon-fri", "Europe/Berlin", "all", 7, "skip", 5000, "billing", False, first["next"]))
        self.assertEqual((info["job"]["kind"], info["job"]["queue"], info["job"]["retry"]),
                         ("send_report", "reports", "fixed(30s,x5)"))
        changed = self.put("report", "send_report", "--cron", "@daily", "--owner", "billing")
        self.assertEqual((changed["created"], changed["changed"]), (False, True))
        self.assertGreater(self.schedule("report")["version"], info["version"])
        self.assert_fails(75, "report", "schedule", "put", "report", "k", "--cron", "@daily", "--owner", "shop", *self.URL)

    def test_schedules_are_listed_shown_paused_and_removed(self):
        self.assertIn("bide schedule put", self.empty_list())
        self.put("tidy", "k", "--every", "1h", "--anchor", "2026-01-01T00:00:00Z")
        self.put("report", "k", *NIGHTLY)
        self.assertEqual(sorted(each["name"] for each in self.bide_json("schedule", "list", *self.URL)["schedules"]),
                         ["report", "tidy"])
        table = self.bide("schedule", "list", *self.URL)
        self.assertRegex(table, r"(?m)^report +30 7 \* \* mon-fri Europe/Berlin +in ")
        self.assertRegex(table, r"(?m)^tidy +every 1h +in ")
        self.assertIn("at 07:30, on Monday to Friday (Europe/Berlin)", self.bide("schedule", "show", "report", *self.URL))
        times = self.bide_json("schedule", "next", "tidy", "--limit", "2", *self.URL)["times"]
        self.assertEqual([time[14:] for time in times], ["00:00.000Z"] * 2)
        self.bide("schedule", "pause", "tidy", *self.URL)
        self.assertTrue(self.schedule("tidy")["paused"])
        self.assertRegex(self.bide("schedule", "list", *self.URL), r"(?m)^tidy .* paused$")
        self.bide("schedule", "resume", "tidy", *self.URL)
        self.assertFalse(self.schedule("tidy")["paused"])
        self.assertEqual(self.bide_json("schedule", "remove", "tidy", *self.URL), {"name": "tidy", "removed": True})
        for words in (("show",), ("pause",), ("resume",), ("run",), ("remove",), ("next",)):
            self.assert_fails(66, "there is no schedule 'reprt'; did you mean 'report'?", "schedule", *words, "reprt", *self.URL)

    def empty_list(self):
        self.bide("enqueue", "k", *self.URL)  # There is a store.
        return self.bide("schedule", "list", *self.URL)

    def test_a_job_of_a_schedule_is_made_at_once(self):
        self.put("report", "send_report", "the body", "--every", "1h", "--queue", "reports", "--header", "lang=en")
        job = self.bide("schedule", "run", "report", *self.URL).strip()
        info = self.bide_json("job", "show", job, *self.URL)
        self.assertEqual((info["kind"], info["queue"], info["body"], info["headers"]["lang"]),
                         ("send_report", "reports", "the body", "en"))
        self.assertEqual(info["headers"]["bide-schedule"], "report")
        self.bide("work", "--exec", "cat", "--queue", "reports", "--drain", "--quiet", *self.URL)
        self.assertEqual(self.bide_json("job", "show", job, *self.URL)["state"], "done")

    def test_occurrences_are_made_while_somebody_is_there_and_listed_with_what_became_of_them(self):
        self.put("often", "tick", "--every", "1s", "--queue", "ticks")
        worker = self.start("work", "--exec", "true", "--queue", "ticks", "--json", *self.URL)
        try:
            done = []
            while len(done) < 2:
                event = json.loads(worker.stdout.readline())
                if event["event"] == "done":
                    done.append(event["id"])
        finally:
            worker.terminate()
            worker.communicate()
        last = self.schedule("often")["last"]
        self.assertLessEqual(set(done), {each.get("job") for each in last})
        self.assertEqual({each["state"] for each in last if each.get("job") in done}, {"done"})
        self.assertIn(" done ", self.bide("schedule", "show", "often", *self.URL))

    def test_mistakes_are_one_line(self):
        put = ("schedule", "put", "report", "k")
        self.assert_fails(64, "'30 7'", *put, "--cron", "30 7", *self.URL)
        self.assert_fails(64, "cron", *put, "--cron", "0 0 30 feb *", *self.URL)
        self.assert_fails(64, "Europe/Berlin", *put, "--cron", "@daily", "--zone", "Europe/Berlim", *self.URL)
        self.assert_fails(64, "schedule name", "schedule", "put", "a b", "k", "--cron", "@daily", *self.URL)
        self.assert_fails(64, "invalid kind 'a b'", "schedule", "put", "report", "a b", "--cron", "@daily", *self.URL)
        self.assert_fails(64, "--overlap: unknown 'skp'; allowed: allow, skip, queue; did you mean 'skip'?",
                          *put, "--cron", "@daily", "--overlap", "skp", *self.URL)
        self.assert_fails(64, "jitter", *put, "--cron", "@daily", "--jitter", "48h", *self.URL)
        self.assert_fails(64, "unknown flag '--delay'", *put, "--cron", "@daily", "--delay", "1h", *self.URL)


class ServedSchedulesTest(SchedulesTest):
    def setUp(self):
        super().setUp()
        self.server = running_server.RunningServer(command.BIDE, self.folder, "--url", "bide:./served").start()
        self.addCleanup(self.server.end)
        self.URL = ("--url", self.server.url)


if __name__ == "__main__":
    command.main()
