"""What is typed wrong is told in one line, with the exit code that scripts can rely on."""

import json
import os
import signal
import unittest

import command

ID = "01890a5d-ac96-774b-bcce-b302099a8057"

# Exit code, what the message must contain, words.
TYPED_WRONG = [
    (64, "did you mean 'enqueue'?", ["enqeue"]),
    (64, "unknown command 'banana'", ["banana"]),
    (64, "did you mean 'list'?", ["job", "lst"]),
    (64, "did you mean '--queue'?", ["enqueue", "k", "--qeue", "x"]),
    (64, "unknown flag '--banana'", ["version", "--banana=1"]),
    (64, "missing KIND", ["enqueue"]),
    (64, "unexpected argument 'c'", ["enqueue", "a", "b", "c"]),
    (64, "--queue: needs a value", ["enqueue", "k", "--queue"]),
    (64, "--json: takes no value", ["version", "--json=yes"]),
    (64, "given 2 times", ["enqueue", "k", "--queue", "a", "--queue", "b"]),
    (64, "a command comes first", ["--url", "version"]),
    (64, "queue", ["enqueue", "k", "--queue", ""]),
    (64, "queue", ["enqueue", "k", "--queue", "../x"]),
    (64, "queue", ["enqueue", "k", "--queue", "a b"]),
    (64, "queue", ["enqueue", "k", "--queue", ".hidden"]),
    (64, "queue", ["enqueue", "k", "--queue", "x" * 300]),
    (64, "kind", ["enqueue", "a b"]),
    (64, "invalid duration '5 parsecs'", ["enqueue", "k", "--delay", "5 parsecs"]),
    (64, "invalid duration '-5'", ["enqueue", "k", "--delay", "-5"]),
    (64, "invalid duration 'NaN'", ["enqueue", "k", "--delay", "NaN"]),
    (64, "invalid duration '1e308'", ["enqueue", "k", "--delay", "1e308"]),
    (64, "invalid time 'tomorrow'", ["enqueue", "k", "--due", "tomorrow"]),
    (64, "invalid time", ["enqueue", "k", "--due", "2026-01-02T03:04:05"]),
    (64, "due", ["enqueue", "k", "--due", "3026-01-02T03:04:05Z"]),
    (64, "not both", ["enqueue", "k", "--due", "2030-01-02T03:04:05Z", "--delay", "1s"]),
    (64, "--retry", ["enqueue", "k", "--retry", "exponential(1s,2,1h,x0)"]),
    (64, "--retry", ["enqueue", "k", "--retry", "fixed(1s,x1000000000)"]),
    (64, "--retry", ["enqueue", "k", "--retry", "steps()"]),
    (64, "--retry", ["enqueue", "k", "--retry", "exponential(1s,-2)"]),
    (64, "--priority", ["enqueue", "k", "--priority", "101"]),
    (64, "NAME=VALUE", ["enqueue", "k", "--header", "novalue"]),
    (64, "--limit", ["job", "list", "--limit", "0"]),
    (64, "--limit", ["job", "list", "--limit", "-1"]),
    (64, "--limit", ["job", "list", "--limit", "abc"]),
    (64, "did you mean 'dead'?", ["job", "list", "--state", "deda"]),
    (64, "'not-an-id'", ["job", "show", "not-an-id"]),
    (64, "one of --due and --delay", ["job", "reschedule", ID]),
    (64, "unknown shell", ["completion", "tcsh"]),
    (64, "did you mean 'enqueue'?", ["enq"]),
    (64, "--id: all zeros", ["enqueue", "k", "--id", "00000000-0000-0000-0000-000000000000"]),
    (64, "--id: invalid job id", ["enqueue", "k", "--id", "7"]),
    (64, "--unique: the key is empty", ["enqueue", "k", "--unique", ""]),
    (64, "--unique: unique_key", ["enqueue", "k", "--unique", "x" * 600]),
    (64, "--time-limit: time_limit 40d", ["enqueue", "k", "--time-limit", "40d"]),
    (64, "--header: invalid header", ["enqueue", "k", "--header", "a\tb=1"]),
    (64, "--content-type: ", ["enqueue", "k", "--content-type", "x" * 300]),
    (64, "--due: due 0000-01-01", ["enqueue", "k", "--due", "0000-01-01T00:00:00Z"]),
    (64, "more than 16777216 bytes", ["enqueue", "k", "@/dev/zero"]),
    (64, "the name of a file", ["enqueue", "k", "@"]),
    (64, "allowed is 1 to 10000", ["work", "--shell", "x", "--concurrency", "0"]),
    (64, "weight from 1 to 1000", ["work", "--shell", "x", "--queue", "q=0"]),
    (64, "invalid queue name", ["work", "--shell", "x", "--queue", "../q"]),
    (64, "is given twice", ["work", "--shell", "x", "--queue", "q", "--queue", "q=2"]),
    (64, "--kind: invalid kind", ["work", "--shell", "x", "--kind", "a b"]),
    (64, "allowed is 1s to 1h", ["work", "--shell", "x", "--lease", "10ms"]),
    (64, "--grace: ", ["work", "--shell", "x", "--grace", "2w"]),
    (64, "--cpu: ", ["work", "--shell", "x", "--cpu", "10ms"]),
    (64, "from 16M", ["work", "--shell", "x", "--memory", "1"]),
    (64, "from 16M", ["work", "--shell", "x", "--memory", "99999999999999G"]),
    (64, "allowed is 1 to 1000", ["dead", "replay", "--all", "--canary", "0"]),
    (64, "allowed is 1 to 1000000", ["dead", "replay", "--all", "--rate", "0"]),
    (66, "there is no program './gone'", ["work", "--exec", "./gone"]),
    (66, "in $PATH", ["work", "--exec", "no-such-program-anywhere"]),
    (77, "cannot be executed", ["work", "--exec", "/etc/passwd"]),
    (77, "cannot be executed", ["work", "--exec", "/etc/"]),
    (66, "Is a directory", ["enqueue", "k", "@."]),
    (78, "%00", ["enqueue", "k", "--url", "bide:./a%00b"]),
    (78, "no two slashes", ["job", "list", "--url", "bide://user:secret@h/.."]),
    (78, "known are bide", ["enqueue", "k", "--url", "ampq://h"]),
    (64, "--exec", ["work"]),
    (64, "--memory", ["work", "--exec", "x", "--memory", "lots"]),
    (66, "cannot read the body", ["enqueue", "k", "@gone.txt"]),
    (66, "there is no store", ["job", "list", "--url", "bide:./gone"]),
    (66, "gone", ["store", "check", "gone"]),
    (78, "unknown scheme", ["enqueue", "k", "--url", "bied:./data"]),
    (78, "scheme", ["enqueue", "k", "--url", "./data"]),
    (78, "did you mean 'durability'?", ["enqueue", "k", "--url", "bide:./data?durabilty=os"]),
    (78, "the URL names no database", ["enqueue", "k", "--url", "mysql://user:secret@host/"]),
]


class ErrorsTest(command.CommandTest):
    def test_what_is_typed_wrong_is_told(self):
        for exit_code, text, words in TYPED_WRONG:
            with self.subTest(words=words):
                self.assert_fails(exit_code, text, *words)

    def test_a_password_is_never_repeated(self):
        for url in ("amqp://user:secret@host/", "bide://user:secret@host/..", "bide:///x/user:secret@", "x://u:secret@h"):
            for words in (["enqueue", "k", "--url", url], ["job", "list", "--url", url], ["enqueue", "k", "b", url],
                          [url], ["store", "check", url], ["enqueue", "k", "--due", url]):
                with self.subTest(words=words):
                    self.assertNotIn("://user:secret", "".join(self.run_bide(*words)[1:]))
                    self.assertNotIn("://u:secret", "".join(self.run_bide(*words, "--json")[1:]))
        self.assertIn("://user:***@host", self.run_bide("enqueue", "k", "b", "x://user:secret@host")[2])

    def test_control_characters_never_reach_the_terminal(self):
        evil = "\x1b]0;title\x07\x9b31m\nbide: error: forged"
        for words in (["enqueue", evil], ["enqueue", "k", "--queue", evil], ["job", "list", "--url", f"bide:./{evil}"],
                      ["job", "show", evil], ["queue", "pause", evil], [evil], ["enqueue", "k", f"@{evil}"],
                      ["store", "check", evil], ["work", "--exec", evil], ["job", "list", "--cursor", evil]):
            with self.subTest(words=words):
                _, out, err = self.run_bide(*words)
                self.assertNotRegex(out + err, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
                self.assertEqual((out + err).count("\n"), 1)

    def test_with_json_every_error_is_one_object_on_stderr(self):
        self.bide("enqueue", "k")
        for exit_code, error_code, words in (
                (64, "usage", ["enqueue", "k", "--banana"]), (64, "usage", ["banana"]),
                (64, "invalid_queue_name", ["enqueue", "k", "--queue", "a b"]), (66, "not_found", ["job", "show", ID]),
                (66, "not_found", ["job", "cancel", ID]), (66, "not_found", ["queue", "purge", "gone"]),
                (78, "invalid_argument", ["job", "list", "--url", "x:"]), (66, "not_found", ["store", "check", "gone"])):
            with self.subTest(words=words):
                code, _, err = self.run_bide(*words, "--json")
                self.assertEqual(code, exit_code, err)
                error = json.loads(err)
                self.assertEqual(list(error), ["error"])
                self.assertEqual((error["error"]["code"], error["error"]["exit"]), (error_code, exit_code))
                self.assertTrue(error["error"]["message"])

    def test_a_closed_stdin_is_no_empty_body(self):
        code = 'exec "$0" enqueue k - <&-'
        result = command.subprocess.run(["sh", "-c", code, command.BIDE], cwd=self.folder, capture_output=True, check=False)
        self.assertEqual(result.returncode, 66)
        self.assertIn(b"stdin", result.stderr)

    def test_a_closed_stderr_does_no_harm_to_the_store(self):
        for code in ('"$0" enqueue k x >&- 2>&-', '"$0" job show x 2>&- <&-', '"$0" enqueue k x <&- 2>&-'):
            command.subprocess.run(["sh", "-c", code, command.BIDE], cwd=self.folder, capture_output=True, check=False)
        self.assertTrue(self.bide_json("store", "check", "data")["ok"])

    def test_a_queue_that_is_not_there_is_66_with_the_nearest(self):
        self.bide("enqueue", "k", "--queue", "mail")
        self.assert_fails(66, "did you mean 'mail'?", "queue", "purge", "mial", "--yes")
        self.assert_fails(66, "did you mean 'mail'?", "queue", "resume", "mial")

    def test_without_a_command_there_is_help(self):
        code, out, _ = self.run_bide()
        self.assertEqual(code, 64)
        self.assertIn("usage: bide", out)
        self.assertIn("usage: bide job", self.run_bide("job")[1])

    def test_what_is_not_there_is_66(self):
        self.bide("enqueue", "k")
        for words in (["job", "show", ID], ["job", "explain", ID], ["job", "cancel", ID], ["queue", "purge", "gone", "--yes"]):
            with self.subTest(words=words):
                self.assertEqual(self.run_bide(*words)[0], 66)

    def test_commands_that_look_leave_a_directory_without_a_store_as_it_is(self):
        os.mkdir(f"{self.folder}/empty")
        for words in (["job", "list"], ["job", "show", ID], ["job", "wait", ID], ["job", "cancel", ID], ["queue", "list"],
                      ["queue", "pause", "q"], ["dead", "list"], ["dead", "export"], ["audit"], ["doctor"], ["top"]):
            with self.subTest(words=words):
                self.assert_fails(66, "there is no store in './empty'", *words, "--url", "bide:./empty")
        for words in (["check"], ["repair"], ["compact"]):
            with self.subTest(words=words):
                self.assert_fails(66, "there is no store in", "store", *words, "empty")
        self.assertEqual(os.listdir(f"{self.folder}/empty"), [])
        self.bide("enqueue", "k", "--url", "bide:./empty")
        self.assertEqual(len(self.bide_json("job", "list", "--url", "bide:./empty")["jobs"]), 1)

    def test_a_wait_that_fails_after_the_enqueue_names_the_job_for_programs(self):
        code, out, err = self.run_bide("enqueue", "k", "--wait", "--timeout", "50ms", "--json")
        self.assertEqual((code, out), (75, ""))
        job, = self.bide_json("job", "list")["jobs"]
        error = json.loads(err)["error"]
        self.assertEqual((error["code"], error["id"]), ("try_again", job["id"]))
        self.assertNotIn("id", json.loads(self.run_bide("enqueue", "k", "--banana", "--json")[2])["error"])

    def test_a_unique_key_that_is_held_is_75(self):
        self.bide("enqueue", "k", "--unique", "one")
        self.assert_fails(75, "one", "enqueue", "k", "--unique", "one")

    def test_a_body_that_is_too_large_is_refused(self):
        self.assert_fails(64, "body", "enqueue", "k", "-", given=b"x" * (16 * 1024 * 1024 + 1))
        self.assertEqual(self.run_bide("audit")[0], 66)

    def test_a_store_that_somebody_holds_is_75_with_its_pid(self):
        self.bide("enqueue", "k", "--delay", "1h")
        holder = self.start("top")
        try:
            holder.stdout.readline()
            self.assert_fails(75, f"process {holder.pid}", "store", "check", "data")
        finally:
            holder.send_signal(signal.SIGKILL)
            holder.communicate()
        self.bide("store", "check", "data")

    def test_a_place_where_no_store_can_be_is_73_or_77(self):
        with open(f"{self.folder}/file", "w", encoding="utf-8") as file:
            file.write("x")
        self.assertIn(self.run_bide("enqueue", "k", "--url", "bide:./file")[0], (73,))
        self.assertIn(self.run_bide("enqueue", "k", "--url", "bide:./no/such/parent")[0], (73,))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_directory_that_may_not_be_written_is_77(self):
        os.mkdir(f"{self.folder}/closed", 0o500)
        self.assert_fails(77, "closed", "enqueue", "k", "--url", "bide:./closed")

    def test_output_that_cannot_be_written_is_74(self):
        with open("/dev/full", "wb") as full:
            result = command.subprocess.run([command.BIDE, "--help"], stdout=full, stderr=command.subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 74)


if __name__ == "__main__":
    command.main()
