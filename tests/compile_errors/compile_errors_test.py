"""Mistakes with the C++ interface end in one error of the compiler that says what to write. Each file here is one mistake; its
first line says what the error must contain.

    python3 compile_errors_test.py INCLUDE COMPILER FILES...
"""

import os
import re
import subprocess
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
INCLUDE, COMPILER, *FILES = sys.argv[1:]
del sys.argv[1:]


class CompileErrors(unittest.TestCase):
    def check(self, name):
        path = os.path.join(FOLDER, name)
        with open(path, encoding="utf-8") as file:
            wanted = file.readline().strip()
        result = subprocess.run([COMPILER, "-std=c++20", "-I", INCLUDE, "-fsyntax-only", path], capture_output=True, text=True,
                                env=os.environ | {"LC_ALL": "C"}, check=False)
        errors = [line for line in result.stderr.splitlines() if re.search(r"\berror:", line)]
        if wanted == "// compiles":
            self.assertEqual((result.returncode, errors), (0, []), name)
            return
        self.assertTrue(wanted.startswith("// says: "), wanted)
        self.assertNotEqual(result.returncode, 0, name)
        self.assertEqual(len(errors), 1, f"{name}: one error is wanted\n" + "\n".join(errors))
        self.assertTrue(any(text in result.stderr for text in wanted[len("// says: "):].split("|")), f"{name}: {errors}")


for each in FILES:
    setattr(CompileErrors, "test_" + each.removesuffix(".cc"), lambda self, name=each: self.check(name))

if __name__ == "__main__":
    unittest.main()
