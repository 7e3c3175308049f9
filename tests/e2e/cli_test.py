"""Jobs, queues and the dead set from the command line."""

import json
import os
import re

import command

NO_SUCH_ID = "01890a5d-ac96-774b-bcce-b302099a8057"


class JobsTest(command.CommandTest):
    def test_an_enqueued_job_is_listed_shown_and_explained(self):
        job_id = self.bide("enqueue", "greet", "hello", "--queue", "mail", "--delay", "1h", "--priority", "-5",
                           "--header", "lang=en", "--retry", "steps(10s,100s)").strip()
        page = self.bide_json("job", "list")
        self.assertEqual([job["id"] for job in page["jobs"]], [job_id])
        self.assertIsNone(page["next"])
        job = self.bide_json("job", "show", job_id)
        self.assertEqual((job["kind"], job["queue"], job["state"], job["body"]), ("greet", "mail", "scheduled", "hello"))
        self.assertEqual((job["priority"], job["retry"], job["headers"]), (-5, "steps(10s,100s)", {"lang": "en"}))
        self.assertIn(job_id, self.bide("job", "list", "--state", "scheduled", "--queue", "mail"))
        self.assertIn("no jobs match", self.bide("job", "list", "--kind", "other"))
        self.assertEqual(self.bide_json("job", "explain", job_id)["code"], "scheduled")
        self.assertIn("greet", self.bide("job", "show", job_id))

    def test_a_body_comes_from_stdin_or_a_file(self):
        piped = self.bide("enqueue", "k", "-", given=b"from stdin").strip()
        self.assertEqual(self.bide_json("job", "show", piped)["body"], "from stdin")
        with open(f"{self.folder}/body.bin", "wb") as file:
            file.write(b"\xff\x00")
        job = self.bide_json("job", "show", self.bide("enqueue", "k", "@body.bin").strip())
        self.assertEqual(job["body_base64"], "/wA=")
        self.assertNotIn("body", job)

    def test_a_body_that_looks_like_a_flag_comes_behind_two_dashes(self):
        job_id = self.bide("enqueue", "k", "--", "--json").strip()
        self.assertEqual(self.bide_json("job", "show", job_id)["body"], "--json")

    def test_pages_follow_one_another(self):
        ids = {self.bide("enqueue", "k", str(i)).strip() for i in range(5)}
        first = self.bide_json("job", "list", "--limit", "3")
        second = self.bide_json("job", "list", "--limit", "3", "--cursor", first["next"])
        self.assertIsNone(second["next"])
        self.assertEqual({job["id"] for job in first["jobs"] + second["jobs"]}, ids)

    def test_the_same_id_is_one_job(self):
        for existed in (False, True):
            answer = self.bide_json("enqueue", "k", "--id", NO_SUCH_ID)
            self.assertEqual((answer["id"], answer["existed"]), (NO_SUCH_ID, existed))
        self.assertEqual(len(self.bide_json("job", "list")["jobs"]), 1)

    def test_another_job_under_the_same_id_is_told(self):
        self.bide("enqueue", "k", "first", "--id", NO_SUCH_ID)
        code, out, err = self.run_bide("enqueue", "k", "second", "--id", NO_SUCH_ID)
        self.assertEqual((code, out.strip()), (0, NO_SUCH_ID))
        self.assertIn("nothing was written", err)
        self.assertIn("another kind, queue or body", err)
        self.assertEqual(self.bide_json("job", "show", NO_SUCH_ID)["body"], "first")
        self.assertNotIn("another", self.run_bide("enqueue", "k", "first", "--id", NO_SUCH_ID)[2])

    def test_an_expired_job_is_explained_and_runs_when_it_is_replayed(self):
        job = self.bide("enqueue", "k", "--expires", "2020-01-01T00:00:00Z").strip()
        self.assertEqual(self.bide_json("job", "explain", job)["code"], "expired")
        self.bide("work", "--exec", "true", "--drain", "--quiet")
        self.assertEqual(self.bide_json("job", "show", job)["dead_reason"], "expired")
        self.bide("dead", "replay", job)
        self.assertIsNone(self.bide_json("job", "show", job).get("expires"))
        self.bide("work", "--exec", "true", "--drain", "--quiet")
        self.assertEqual(self.bide_json("job", "show", job)["state"], "done")

    def test_all_dead_jobs_are_listed_page_by_page(self):
        ids = {self.bide("enqueue", "k", "--retry", "none").strip() for _ in range(5)}
        self.bide("work", "--exec", "false", "--drain", "--quiet")
        found, cursor = [], ()
        while True:
            page = self.bide_json("dead", "list", "--limit", "2", *cursor)
            self.assertLessEqual(len(page["jobs"]), 2)
            found += [job["id"] for job in page["jobs"]]
            if not page["next"]:
                break
            cursor = ("--cursor", page["next"])
        self.assertEqual((len(found), set(found)), (5, ids))
        self.assertIn("--cursor", "".join(self.run_bide("dead", "list", "--limit", "2")[1:]))

    def test_a_callback_that_no_server_would_deliver_is_refused_or_warned_of(self):
        header = ("--header", "bide-callback=https://example.org/hook")
        self.assert_fails(64, "bide-callback is delivered by a bide server only", "enqueue", "k", *header)
        answer = self.bide_json("enqueue", "k", *header, "--queue", "callbacks")
        self.assertIn("if it delivers queue 'callbacks'", answer["warnings"][0])
        self.assertEqual(self.bide_json("job", "show", answer["id"])["queue"], "callbacks")
        answer = self.bide_json("enqueue", "k", "--header", "bide-on-done=https://example.org/")
        self.assertEqual(answer["warnings"], ["bide-on-done: delivered only by a bide server of this store"])
        # The store tells the queue itself.
        self.assertEqual(self.bide_json("enqueue", "k", "--header", "bide-reply-queue=x")["warnings"], [])
        self.assertEqual(self.bide_json("enqueue", "k", "--header", "other=x")["warnings"], [])

    def test_a_job_is_rescheduled_and_cancelled(self):
        job_id = self.bide("enqueue", "k", "--delay", "1h").strip()
        self.bide("job", "reschedule", job_id, "--due", "2030-01-02T03:04:05Z")
        self.assertEqual(self.bide_json("job", "show", job_id)["due"], "2030-01-02T03:04:05.000Z")
        self.assertEqual(self.bide_json("job", "cancel", job_id)["jobs"], [{"id": job_id, "ok": True}])
        self.assertEqual(self.run_bide("job", "show", job_id)[0], 66)
        self.assertEqual(self.bide_json("audit")["details"]["cancelled"], 1)

    def test_what_matches_is_cancelled_and_rescheduled(self):
        for number in range(5):
            self.bide("enqueue", "mail", str(number), "--delay", "1h")
        kept = self.bide("enqueue", "other", "--delay", "1h").strip()
        self.assertEqual(self.bide_json("job", "cancel", "--kind", "mail", "--dry-run"),
                         {"would_cancel": 5, "by_kind": {"mail": 5}})
        self.assert_fails(64, "cancel 5 jobs", "job", "cancel", "--kind", "mail")
        self.assert_fails(64, "which ones?", "job", "cancel", "--yes")
        self.assertEqual(self.bide_json("job", "cancel", "--kind", "mail", "--limit", "2", "--yes"),
                         {"matched": 2, "succeeded": 2, "failed": 0})
        self.assertEqual(self.bide("job", "reschedule", "--kind", "mail", "--due", "2030-01-02T03:04:05Z", "--yes"),
                         "rescheduled 3 of 3 jobs\n")
        moved = self.bide_json("job", "list", "--kind", "mail")["jobs"]
        self.assertEqual([job["due"] for job in moved], ["2030-01-02T03:04:05.000Z"] * 3)
        self.assertEqual(self.bide("job", "cancel", "--state", "scheduled", "--kind", "mail", "--yes"), "cancelled 3 of 3 jobs\n")
        self.assertEqual(self.bide("job", "cancel", "--kind", "mail", "--yes"), "no jobs match\n")
        self.assertEqual([job["id"] for job in self.bide_json("job", "list")["jobs"]], [kept])

    def test_many_jobs_are_enqueued_from_lines(self):
        lines = [json.dumps({"kind": "k", "queue": "bulk", "body": {"number": n}}) for n in range(1200)]
        ids = self.bide("enqueue", "--ndjson", "-", given="\n".join(lines).encode()).split()
        self.assertEqual(len(set(ids)), 1200)
        self.assertEqual(json.loads(self.bide_json("job", "show", ids[777])["body"]), {"number": 777})
        path = os.path.join(self.folder, "jobs.ndjson")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"kind":"good"}\n\n{"kind":"bad kind"}\nnot json\n{"kind":"good"}\n')
        code, out, err = self.run_bide("enqueue", "--ndjson", path, "--json")
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((code, len(err.splitlines())), (64, 1), err)
        self.assertEqual(sorted((each["line"], "id" in each) for each in answers),
                         [(1, True), (3, False), (4, False), (5, True)])
        self.assert_fails(64, "each line", "enqueue", "k", "--ndjson", "-")
        self.assert_fails(64, "--queue does not go with", "enqueue", "--ndjson", "-", "--queue", "q")
        self.assert_fails(66, "No such file", "enqueue", "--ndjson", "missing")

    def test_an_expiry_can_be_a_duration(self):
        job = self.bide_json("job", "show", self.bide("enqueue", "k", "--expires", "1h").strip())
        self.assertGreater(job["expires"], job["due"])

    def test_a_due_time_in_the_past_is_accepted_with_a_warning(self):
        code, _, err = self.run_bide("enqueue", "k", "--due", "2020-01-02T03:04:05Z")
        self.assertEqual(code, 0)
        self.assertIn("bide: warning:", err)

    def test_what_hardly_anybody_means_is_done_with_a_warning(self):
        code, _, err = self.run_bide("enqueue", "k", "--expires", "2020-01-02T03:04:05Z")
        self.assertEqual((code, err.count("bide: warning: --expires is in the past")), (0, 1))
        answer = self.bide_json("enqueue", "k", "--due", "2030-01-02T03:04:05Z", "--expires", "2029-01-02T03:04:05Z")
        self.assertIn("before the job is due", answer["warnings"][0])
        code, _, err = self.run_bide("job", "reschedule", answer["id"], "--due", "2020-01-02T03:04:05Z")
        self.assertEqual(code, 0)
        self.assertIn("bide: warning: --due is in the past", err)

    def test_what_is_to_come_is_listed_before_what_is_finished_newest_first(self):
        for i in range(3):
            self.bide("enqueue", f"done{i}")
            self.bide("work", "--shell", "exit 0", "--drain", "--quiet")
        for hours in (2, 1):
            self.bide("enqueue", f"in{hours}h", "--delay", f"{hours}h")
        kinds, cursor = [], None
        while cursor != "":
            page = self.bide_json("job", "list", "--limit", "2", *(["--cursor", cursor] if cursor else []))
            kinds += [job["kind"] for job in page["jobs"]]
            cursor = page["next"] or ""
        self.assertEqual(kinds, ["in1h", "in2h", "done2", "done1", "done0"])

    def test_of_a_done_job_nothing_is_made_up(self):
        url = ("--url", "bide:data?done_bytes=0")
        job_id = self.bide("enqueue", "k", "--priority", "7", "--retry", "none", *url).strip()
        self.bide("work", "--shell", "echo 42", "--drain", "--quiet", *url)
        job = self.bide_json("job", "show", job_id, *url)
        for name in ("due", "priority", "retry", "time_limit_ms", "headers", "content_type", "counts", "errors"):
            self.assertIsNone(job[name], name)
        self.assertIn("T", job["finished"])
        self.assertNotIn("retry", self.bide("job", "show", job_id, *url))

    def test_a_done_job_tells_what_it_was_and_did(self):
        job_id = self.bide("enqueue", "k", "the body", "--priority", "7", "--retry", "fixed(0s,x3)", "--header", "tenant=acme").strip()
        self.bide("work", "--shell", "test $BIDE_ATTEMPT = 2 && echo 42", "--drain", "--quiet")
        job = self.bide_json("job", "show", job_id)
        self.assertEqual((job["state"], job["body"], job["priority"], job["retry"], job["headers"], job["attempts"], job["result"]),
                         ("done", "the body", 7, "fixed(0,x3)", {"tenant": "acme"}, 2, "42\n"))
        self.assertEqual([error["attempt"] for error in job["errors"]], [1])
        self.assertIn("the body", self.bide("job", "show", job_id))

    def test_what_is_not_text_is_base64_beside_its_name(self):
        raw = b"\xff".decode("utf-8", "surrogateescape")
        job = self.bide_json("job", "show", self.bide("enqueue", "k", "--unique", raw, "--content-type", raw, "--header",
                                                      f"bad={raw}", "--header", "good=1").strip())
        self.assertEqual((job["unique_key_base64"], job["content_type_base64"]), ("/w==", "/w=="))
        self.assertEqual((job["headers"], job["headers_base64"]), ({"good": "1"}, [["YmFk", "/w=="]]))

    def test_people_get_durations_they_can_read(self):
        job_id = self.bide("enqueue", "k", "--delay", "1h").strip()
        self.assertRegex(self.bide("job", "explain", job_id), r"due in 59m 5\d(\.\d)?s\.")


class QueuesTest(command.CommandTest):
    def test_a_queue_is_paused_resumed_and_purged(self):
        self.bide("enqueue", "k", "--queue", "q")
        self.bide("queue", "pause", "q")
        self.assertTrue(self.bide_json("queue", "list")["queues"][0]["paused"])
        self.assertEqual(self.run_bide("doctor")[0], 1)
        self.bide("queue", "resume", "q")
        self.assertFalse(self.bide_json("queue", "list")["queues"][0]["paused"])
        self.assert_fails(64, "remove 1 jobs", "queue", "purge", "q")
        self.assertEqual(self.bide_json("queue", "purge", "q", "--yes")["removed"], 1)
        self.assertEqual(self.bide_json("audit")["live"], 0)

    def test_a_queue_can_be_paused_before_its_first_job(self):
        self.bide("enqueue", "k", "--queue", "mail")
        code, out, err = self.run_bide("queue", "pause", "mial")
        self.assertEqual((code, out), (0, "queue mial is paused\n"))
        self.assertIn("has had no jobs so far; did you mean 'mail'?", err)
        self.bide("enqueue", "k", "--queue", "mial")
        self.assertEqual({q["name"]: q["paused"] for q in self.bide_json("queue", "list")["queues"]},
                         {"mail": False, "mial": True})
        self.bide("queue", "resume", "mial")

    def test_top_shows_the_queues(self):
        self.bide("enqueue", "k", "--queue", "images")
        self.assertIn("images", self.bide("top", "--frames", "2", "--every", "100ms"))
        looks = self.bide("top", "--frames", "2", "--every", "100ms", "--json").splitlines()
        self.assertEqual([json.loads(look)["queues"][0]["name"] for look in looks], ["images"] * 2)
        self.assertEqual(json.loads(looks[1])["dead_per_s"], 0)
        self.assert_fails(64, "--sort", "top", "--sort", "size")


class DeadTest(command.CommandTest):
    def setUp(self):
        super().setUp()
        for i in range(3):
            self.bide("enqueue", "bad", str(i))
        self.bide("enqueue", "worse", "x")
        self.bide("work", "--shell", "echo no >&2; exit 65", "--drain", "--quiet")

    def ids(self, *words):
        return [job["id"] for job in self.bide_json("dead", "list", *words)["jobs"]]

    def test_dead_jobs_are_listed_by_filter(self):
        self.assertEqual(len(self.ids()), 4)
        self.assertEqual(len(self.ids("--kind", "bad")), 3)
        self.assertEqual(len(self.ids("--error", "no")), 4)
        self.assertEqual(len(self.ids("--error", "something else")), 0)
        self.assertEqual(len(self.ids("--since", "1h")), 4)
        self.assertEqual(len(self.ids("--limit", "2")), 2)
        job = self.bide_json("dead", "show", self.ids()[0])
        self.assertEqual((job["dead_reason"], job["errors"][-1]["text"]), ("rejected", "exit status 65: no"))

    def test_a_dry_run_changes_nothing(self):
        plan = self.bide_json("dead", "replay", "--kind", "bad", "--dry-run")
        self.assertEqual(plan, {"would_replay": 3, "by_kind": {"bad": 3}})
        self.assertEqual(len(self.ids()), 4)

    def test_replayed_jobs_run_again_with_a_fresh_budget(self):
        self.bide("dead", "replay", "--kind", "bad")
        self.assertEqual(len(self.ids()), 1)
        self.bide("work", "--shell", "exit 0", "--drain", "--quiet")
        self.assertEqual(self.bide_json("audit")["done"], 3)

    def test_a_rate_spreads_them_over_time(self):
        self.bide("dead", "replay", "--all", "--rate", "10")
        dues = sorted(job["due"] for job in self.bide_json("job", "list")["jobs"])
        self.assertEqual(len(dues), 4)
        self.assertLess(dues[0], dues[3])

    def test_canaries_that_nobody_runs_stop_the_replay(self):
        self.assert_fails(75, "the rest stays dead", "dead", "replay", "--all", "--canary", "1", "--timeout", "50ms")
        self.assertEqual(len(self.ids()), 3)

    def test_deleting_asks_first(self):
        self.assert_fails(64, "delete 4 dead jobs", "dead", "delete", "--all")
        self.assert_fails(64, "which ones?", "dead", "delete", "--yes")
        self.assertEqual(self.bide_json("dead", "delete", "--kind", "bad", "--dry-run"), {"would_delete": 3, "by_kind": {"bad": 3}})
        self.bide("dead", "delete", "--kind", "worse", "--yes")
        self.assertEqual(len(self.ids()), 3)

    def test_an_export_has_one_object_a_line(self):
        lines = self.bide("dead", "export").splitlines()
        self.assertEqual(sorted(json.loads(line)["body"] for line in lines), ["0", "1", "2", "x"])


class HelpTest(command.CommandTest):
    def test_manual_help_and_completion_agree_on_every_command_and_flag(self):
        table = self.bide_json("manual")["commands"]
        self.assertGreater(len(table), 30)
        sections = self.bide("manual").replace("\\-", "-").split(".SS ")[1:]
        self.assertEqual(len(sections), len(table))
        script = self.bide("completion", "bash")
        for command_of_table, section in zip(table, sections):
            path = command_of_table["path"]
            flags = sorted(flag["name"] for flag in command_of_table["flags"])
            with self.subTest(path=path):
                text = self.bide(*path.split(" "), "--help")
                in_help = re.findall(r"^  (--[a-z-]+)", text, re.M)
                in_manual = re.findall(r'^\.B "(--[a-z-]+)', section.split(".SH")[0], re.M)
                in_completion = re.search(rf"'{path}'\) words='([^']*)'", script)[1].split()
                self.assertEqual([sorted(in_help), sorted(in_manual), sorted(in_completion)], [flags] * 3)
                for argument in command_of_table["arguments"]:
                    self.assertRegex(text, rf"(?m)^  {argument['name']} ")
                    self.assertIn(f".I {argument['name']}\n", section)
                self.assertIn("--json", flags)

    def test_the_manual_page_names_every_command_of_the_help(self):
        manual = self.bide("manual").replace("\\-", "-")
        commands = [line.split("  ")[1] for line in self.bide("--help").splitlines() if line.startswith("  ")]
        self.assertGreater(len(commands), 25)
        for name in commands:
            self.assertIn(f'.SS "bide {name}', manual)

    def test_the_page_about_the_command_line_names_every_command(self):
        with open(f"{os.path.dirname(os.path.abspath(__file__))}/../../docs/cli.md", encoding="utf-8") as file:
            page = file.read()
        for line in self.bide("--help").splitlines():
            if line.startswith("  "):
                self.assertIn(f"bide {line.split('  ')[1]}", page)

    def test_every_command_has_help(self):
        for line in self.bide("--help").splitlines():
            if line.startswith("  "):
                words = line.split("  ")[1].split(" ")
                self.assertIn(f"usage: bide {' '.join(words)}", self.bide(*words, "--help"))
                self.assertEqual(self.bide("help", *words), self.bide(*words, "--help"))

    def test_bash_can_read_the_completion_and_use_it(self):
        script = self.bide("completion", "bash")
        ask = script + 'COMP_WORDS=(bide job re); COMP_CWORD=2; _bide; printf "%s\\n" "${COMPREPLY[@]}"\n'
        answer = command.subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
        self.assertEqual(sorted(answer.stdout.split()), ["reschedule", "retry"])
        ask = script + 'COMP_WORDS=(bide job list --st); COMP_CWORD=3; _bide; printf "%s\\n" "${COMPREPLY[@]}"\n'
        answer = command.subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
        self.assertEqual(answer.stdout.split(), ["--state"])
        self.assertIn("bide", self.bide("completion", "zsh"))
        self.assertIn("bide", self.bide("completion", "fish"))

    def test_the_version_is_told(self):
        self.assertRegex(self.bide_json("version")["version"], r"^\d+\.\d+\.\d+$")
        self.assertTrue(self.bide("--version").startswith("bide "))


if __name__ == "__main__":
    command.main()
