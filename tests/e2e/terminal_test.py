"""What a person sees who sits at a terminal: colour, progress, questions."""

import os
import pty
import select
import subprocess

import command


class TerminalTest(command.CommandTest):
    def on_terminal(self, *words, typed=b"", environment=None):
        """(exit code, everything that was shown)."""
        master, slave = pty.openpty()
        process = subprocess.Popen([command.BIDE, *words], cwd=self.folder, stdin=slave, stdout=slave, stderr=slave,
                                   env=self.environment() | {"TERM": "xterm"} | (environment or {}))
        os.close(slave)
        shown = b""
        os.write(master, typed)
        while True:
            ready, _, _ = select.select([master], [], [], 60)
            try:
                piece = os.read(master, 65536) if ready else b""
            except OSError:  # The other side is closed.
                break
            if not piece:
                break
            shown += piece
        os.close(master)
        return process.wait(timeout=60), shown.decode("utf-8", "replace")

    def setUp(self):
        super().setUp()
        for i in range(3):
            self.bide("enqueue", "k", str(i), "--retry", "none")
        self.bide("work", "--drain", "--quiet", "--shell", r"printf '\033[31mred\007' >&2; exit 1")

    def test_colour_is_only_for_those_who_want_it(self):
        self.assertIn("\x1b[1m", self.on_terminal("dead", "list")[1])
        self.assertNotIn("\x1b", self.on_terminal("dead", "list", environment={"NO_COLOR": "1"})[1])
        self.assertNotIn("\x1b", self.on_terminal("dead", "list", environment={"TERM": "dumb"})[1])
        self.assertNotIn("\x1b", self.bide("dead", "list"))

    def test_what_handlers_wrote_is_escaped(self):
        for words in (["dead", "list"], ["job", "list"], ["job", "show", self.dead_id()], ["job", "explain", self.dead_id()],
                      ["job", "wait", self.dead_id()], ["dead", "export"], ["dead", "list", "--json"]):
            shown = self.on_terminal(*words, environment={"TERM": "dumb"})[1]
            self.assertNotRegex(shown, r"[\x07\x1b]", words)

    def dead_id(self):
        return self.bide_json("dead", "list")["jobs"][0]["id"]

    def test_a_result_is_escaped_on_a_terminal_and_whole_in_a_pipe(self):
        job_id = self.bide("enqueue", "r").strip()
        self.bide("work", "--drain", "--quiet", "--shell", r"printf 'a\033[31mb\nc'")
        self.assertEqual(self.on_terminal("job", "wait", job_id), (0, "a\\x1b[31mb\r\nc\r\n"))
        self.assertEqual(self.bide("job", "wait", job_id), "a\x1b[31mb\nc\n")

    def test_top_ends_with_a_key(self):
        code, shown = self.on_terminal("top", "--every", "1h", typed=b"sq")
        self.assertEqual(code, 0)
        self.assertIn("s sort, by ready", shown)

    def test_long_commands_show_a_bar(self):
        for words in (["store", "check", "data"], ["store", "backup", "data", "saved"], ["store", "compact", "data"],
                      ["dead", "replay", "--all", "--rate", "100"]):
            with self.subTest(words=words):
                code, shown = self.on_terminal(*words)
                self.assertEqual(code, 0, shown)
                self.assertRegex(shown, r"\[[#.]{24}\]")
                self.assertNotRegex(self.on_terminal(*words, environment={"TERM": "dumb"})[1], r"\[[#.]{24}\]")

    def test_a_question_is_asked_before_anything_is_deleted(self):
        code, shown = self.on_terminal("dead", "delete", "--all", typed=b"n\n")
        self.assertEqual(code, 64)
        self.assertIn("This will delete 3 dead jobs for good, which died from", shown)
        self.assertIn("nothing was done", shown)
        code, _ = self.on_terminal("dead", "delete", "--all", typed=b"y\n")
        self.assertEqual((code, self.bide_json("dead", "list")["jobs"]), (0, []))


if __name__ == "__main__":
    command.main()
