"""Every byte that is typed arrives: bodies, the values of flags, and the arguments of a handler."""

import base64
import os
import random

import command

# What parsers of command lines, lists, templates and configuration files take for something else.
PIECES = [b"[", b"]", b"[]", b"[1]", b'["a"]', b"[1,2]", b"{", b"}", b"{{", b"}}", b"{}", b"(", b")", b"'", b'"', b"`",
          b"''", b'""', b",", b"%", b"%%", b"--", b"-", b"=", b"#", b";", b":", b"\\", b"\\n", b"\\x41", b"$HOME", b"~", b"*",
          b"?", b"!", b"|", b"&", b"@", b"+", b"++", b"/", b" ", b"\t", b"\n", b"\r", b"a", b"0", b"true", b"--json", b"-h",
          b"--help", b"--url", b"\xc3\xa9", b"\xff", b"\x01", b"\x7f"]
KNOWN = [b"[1]", b'["a"]', b"[]", b"[1,2]", b"[[1]]", b"[", b"]", b"{}", b"{{a}}", b"%%", b'"a"', b"'a'", b"a,b", b"", b" ",
         b"--", b"--help", b"-h", b"--json", b"--x=[1]", b"a=b", b"=", b"\\", b"true", b"-1"]


def odd_strings(count, seed):
    choose = random.Random(seed)
    return KNOWN + [b"".join(choose.choices(PIECES, k=choose.randint(1, 6))) for _ in range(count)]


def without_controls(value):
    """Headers and content types may not have them."""
    return bytes(byte for byte in value if byte >= 0x20 and byte != 0x7F)


def stored(job, name):
    """The bytes of a field of the JSON, which has what is not text as base64."""
    return base64.b64decode(job[name + "_base64"]) if name + "_base64" in job else job[name].encode()


def stored_headers(job):
    encoded = job.get("headers_base64") or []
    return [value.encode() for value in (job["headers"] or {}).values()] + [base64.b64decode(value) for _, value in encoded]


class ArgumentsTest(command.CommandTest):
    def enqueued(self, *words, given=b""):
        job_id = self.bide("enqueue", *map(os.fsdecode, words), given=given).strip()
        return self.bide_json("job", "show", job_id)

    def test_every_byte_of_a_body_arrives(self):
        for body in odd_strings(60, seed=1):
            with self.subTest(body=body):
                # These two have a meaning of their own, which the help tells.
                if body == b"-" or body.startswith(b"@"):
                    job = self.enqueued("k", "-", given=body)
                elif body.startswith(b"-"):
                    job = self.enqueued("k", "--", body)
                else:
                    job = self.enqueued("k", body)
                self.assertEqual(stored(job, "body"), body)

    def test_every_byte_of_a_flags_value_arrives(self):
        for at, value in enumerate(odd_strings(40, seed=2)):
            with self.subTest(value=value):
                key = b"%d" % at + value
                plain = without_controls(value) or b"x"
                job = self.enqueued("--unique=" + os.fsdecode(key), "--content-type", plain, "k", "--header", b"a=" + plain)
                self.assertEqual(stored(job, "unique_key"), key)
                self.assertEqual(stored(job, "content_type"), plain)
                self.assertEqual(stored_headers(job), [plain])

    def test_every_byte_of_a_handlers_argument_arrives(self):
        handler = f"{self.folder}/handler"
        with open(handler, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nfor each; do printf '%s\\0' \"$each\"; done\n")
        os.chmod(handler, 0o755)
        arguments = [os.fsdecode(each) for each in odd_strings(100, seed=3)]
        job_id = self.bide("enqueue", "k").strip()
        self.bide("work", "--drain", "--quiet", "--exec", handler, "--", *arguments)
        job = self.bide_json("job", "show", job_id)
        self.assertEqual(stored(job, "result").split(b"\0"), [os.fsencode(each) for each in arguments] + [b""])
        # Without the two dashes, as long as none looks like a flag.
        arguments = [each for each in arguments if not each.startswith("-")]
        job_id = self.bide("enqueue", "k").strip()
        self.bide("work", "--drain", "--quiet", "--exec", handler, *arguments)
        job = self.bide_json("job", "show", job_id)
        self.assertEqual(stored(job, "result").split(b"\0"), [os.fsencode(each) for each in arguments] + [b""])

    def test_the_value_of_a_flag_may_look_like_a_flag(self):
        for value in ("--help", "-h", "--", "--json", "--unique", "-1"):
            job = self.enqueued("k", "--unique", value)
            self.assertEqual(job["unique_key"], value)

    def test_help_is_shown_wherever_it_is_asked_for(self):
        for words in (["--help"], ["k", "-h"], ["--banana", "--help"], ["--queue", "q", "--help"]):
            self.assertIn("usage", self.bide("enqueue", *words))


if __name__ == "__main__":
    command.main()
