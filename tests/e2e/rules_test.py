"""The rules of queues, from the command line and over HTTP."""

import command
import running_server


class RulesTest(command.CommandTest):
    URL = ()

    def rules(self, *words):
        return self.bide_json("queue", "rules", *words, *self.URL)["rules"]

    def test_rules_are_changed_one_by_one_and_taken_away(self):
        rules = self.rules("mail", "--at-once", "50", "--rate", "100/s,burst=5", "--group-at-once", "3", "--group-rate",
                           "10/5m", "--fair", "--weight", "tenant:42=3", "--ageing", "1m", "--most-jobs", "1000",
                           "--most-bytes", "1000000", "--oldest", "1h")
        self.assertEqual(rules, {"queue": "mail", "at_once": 50, "rate": "100/s,burst=5", "group_at_once": 3,
                                 "group_rate": "10/5m", "fair": True, "weights": {"tenant:42": 3}, "ageing_ms": 60000,
                                 "most_jobs": 1000, "most_bytes": 1000000, "oldest_ms": 3600000})
        self.assertEqual(self.rules("mail"), rules)
        self.assertEqual(self.rules(), [rules])
        changed = self.rules("mail", "--at-once", "0", "--group-burst", "7", "--weight", "tenant:42=1", "--weight", "b=2")
        self.assertEqual(changed, rules | {"at_once": 0, "group_rate": "10/5m,burst=7", "weights": {"b": 2}})
        unfair = self.rules("mail", "--no-fair")
        self.assertEqual((unfair["fair"], unfair["weights"]), (False, {}))
        self.assertEqual(self.rules("mail", "--rate", "none")["rate"], None)
        text = self.bide("queue", "rules", "mail", *self.URL)
        self.assertRegex(text, r"(?m)^  rate of a group +10/5m,burst=7$")
        cleared = self.rules("mail", "--clear", "--at-once", "2")
        self.assertEqual((cleared["at_once"], cleared["most_jobs"], cleared["group_rate"]), (2, 0, None))
        self.bide("queue", "rules", "mail", "--clear", *self.URL)
        self.assertEqual(self.rules(), [])
        self.assertIn("has no rules", self.bide("queue", "rules", "mail", *self.URL))
        self.assertIn("bide queue rules mail", self.bide("queue", "rules", *self.URL))

    def test_mistakes_are_one_line(self):
        rules = ("queue", "rules")
        self.assert_fails(64, "--rate: invalid rate '10'", *rules, "mail", "--rate", "10")
        self.assert_fails(64, "--group-rate: invalid rate '0/s'", *rules, "mail", "--group-rate", "0/s")
        self.assert_fails(64, "--burst: there is no rate", *rules, "mail", "--burst", "5", *self.URL)
        self.assert_fails(64, "--weight: 'a' is not GROUP=N", *rules, "mail", "--weight", "a")
        self.assert_fails(64, "--weight: 'a=101' is not GROUP=N", *rules, "mail", "--weight", "a=101")
        self.assert_fails(64, "--fair and --no-fair", *rules, "mail", "--fair", "--no-fair")
        self.assert_fails(64, "--at-once", *rules, "mail", "--at-once", "-1")
        self.assert_fails(64, "missing QUEUE", *rules, "--at-once", "5")
        self.assert_fails(64, "invalid queue name 'a b'", *rules, "a b", "--at-once", "5")

    def test_no_more_run_at_once_than_the_rules_say(self):
        self.rules("mail", "--group-at-once", "1")
        for group in ("a", "a", "b", "b"):
            self.bide("enqueue", "k", group, "--queue", "mail", "--group", group, *self.URL)
        self.assertEqual(len(self.bide_json("job", "list", "--group", "a", *self.URL)["jobs"]), 2)
        # Fails when another one of its group is running.
        script = 'group="$1.$(cat)"; mkdir "$group" && sleep 0.1 && rmdir "$group"'
        self.bide("work", "--shell", script, "--queue", "mail", "--concurrency", "4", "--drain", "--quiet", *self.URL,
                  "--", f"{self.folder}/running")
        jobs = self.bide_json("job", "list", "--state", "done", *self.URL)["jobs"]
        self.assertEqual([job["attempts"] for job in jobs], [1, 1, 1, 1])


class ServedRulesTest(RulesTest):
    def setUp(self):
        super().setUp()
        self.server = running_server.RunningServer(command.BIDE, self.folder, "--url", "bide:./served").start()
        self.addCleanup(self.server.end)
        self.URL = ("--url", self.server.url)


if __name__ == "__main__":
    command.main()
