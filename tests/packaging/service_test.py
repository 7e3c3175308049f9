"""The systemd unit: it is one, and what runs under it can do little harm.

service_test.py SOURCE_FOLDER
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv[1])
UNIT = f"{SOURCE}/packaging/bide.service"
MOST_EXPOSED = 1.5


def analyze(*words):
    done = subprocess.run(["systemd-analyze", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=os.environ | {"SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", "LC_ALL": "C.UTF-8"},
                          timeout=60, check=False)
    return done.returncode, done.stdout


class ServiceTest(unittest.TestCase):
    def test_its_exposure_is_low(self):
        code, text = analyze("security", "--offline=true", UNIT)
        found = re.search(r"exposure level for bide\.service: ([0-9.]+)", text)
        self.assertIsNotNone(found, text)
        self.assertLessEqual(float(found[1]), MOST_EXPOSED, text)
        self.assertEqual(code, 0)

    def test_a_unit_without_its_hardening_would_be_noticed(self):
        with open(UNIT, encoding="utf-8") as file:
            plain = file.read().split("# --- what it cannot do")[0]
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/bide.service", "w", encoding="utf-8") as file:
                file.write(plain)
            _, text = analyze("security", "--offline=true", f"{folder}/bide.service")
        self.assertGreater(float(re.search(r"exposure level for bide\.service: ([0-9.]+)", text)[1]), MOST_EXPOSED)

    def test_systemd_understands_every_line(self):
        with tempfile.TemporaryDirectory() as folder:
            # There is no command and no manual in this folder; everything else must be right.
            with open(UNIT, encoding="utf-8") as file:
                unit = file.read().replace("ExecStart=bide ", "ExecStart=/bin/true ").replace("Documentation=man:bide(1)\n", "")
            with open(f"{folder}/bide.service", "w", encoding="utf-8") as file:
                file.write(unit)
            code, text = analyze("verify", "--recursive-errors=no", f"{folder}/bide.service")
        self.assertEqual((code, [line for line in text.splitlines() if "bide.service" in line]), (0, []))

    def test_a_start_that_cannot_succeed_is_not_tried_again(self):
        with open(UNIT, encoding="utf-8") as file:
            prevented = re.search(r"^RestartPreventExitStatus=(.*)$", file.read(), re.MULTILINE)[1].split()
        self.assertEqual(prevented, ["64", "65", "73", "77", "78"])


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        print("systemd-analyze is not installed")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=2)
