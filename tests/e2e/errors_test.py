"""What is typed wrong is told in one line, with the exit code that scripts can rely on."""

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
    (64, "a command comes first", ["--json", "version"]),
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
    (64, "--exec", ["work"]),
    (64, "--memory", ["work", "--exec", "x", "--memory", "lots"]),
    (66, "cannot read the body", ["enqueue", "k", "@gone.txt"]),
    (66, "there is no store", ["job", "list", "--url", "bide:./gone"]),
    (66, "gone", ["store", "check", "gone"]),
    (78, "unknown scheme", ["enqueue", "k", "--url", "bied:./data"]),
    (78, "scheme", ["enqueue", "k", "--url", "./data"]),
    (78, "did you mean 'durability'?", ["enqueue", "k", "--url", "bide:./data?durabilty=os"]),
    (78, "not built in", ["enqueue", "k", "--url", "amqp://user:secret@host/"]),
]


class ErrorsTest(command.CommandTest):
    def test_what_is_typed_wrong_is_told(self):
        for exit_code, text, words in TYPED_WRONG:
            with self.subTest(words=words):
                self.assert_fails(exit_code, text, *words)

    def test_a_password_is_never_repeated(self):
        self.assertNotIn("secret", self.run_bide("enqueue", "k", "--url", "amqp://user:secret@host/")[2])

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

    def test_a_unique_key_that_is_held_is_75(self):
        self.bide("enqueue", "k", "--unique", "one")
        self.assert_fails(75, "one", "enqueue", "k", "--unique", "one")

    def test_a_body_that_is_too_large_is_refused(self):
        self.assert_fails(64, "body", "enqueue", "k", "-", given=b"x" * (16 * 1024 * 1024 + 1))
        self.assertEqual(self.bide_json("audit")["accepted"], 0)

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
