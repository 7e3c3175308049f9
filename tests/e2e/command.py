"""Runs `bide` in a folder of its own."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

BIDE = os.path.abspath(sys.argv.pop()) if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else "bide"


class CommandTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="bide-cli-test-")
        self.addCleanup(self._folder.cleanup)
        self.folder = self._folder.name

    def environment(self):
        return {"PATH": os.environ["PATH"], "HOME": self.folder, "TMPDIR": self.folder}

    def start(self, *words, **more):
        return subprocess.Popen([BIDE, *words], cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def run_bide(self, *words, given=b"", environment=None, **more):
        """(exit code, stdout, stderr)"""
        result = subprocess.run([BIDE, *words], cwd=self.folder, env=self.environment() | (environment or {}),
                                input=given, capture_output=True, timeout=120, check=False, **more)
        return result.returncode, result.stdout.decode(), result.stderr.decode()

    def bide(self, *words, given=b""):
        """stdout of a command that must succeed."""
        code, out, err = self.run_bide(*words, given=given)
        self.assertEqual(code, 0, f"bide {' '.join(words)}: {err}")
        return out

    def bide_json(self, *words, given=b""):
        return json.loads(self.bide(*words, "--json", given=given))

    def assert_fails(self, exit_code, text, *words, **more):
        code, out, err = self.run_bide(*words, **more)
        self.assertEqual(code, exit_code, f"bide {' '.join(words)}: {out}{err}")
        self.assertRegex(err, r"^bide: error: [^\n]+\n$")
        self.assertIn(text, err)


def main():
    unittest.main(module="__main__")
