"""Rule: an include follows an arrow of arrows.txt."""

import fnmatch
import re

# x_test.cc, and what only such files include: x_test_bench.h.
TEST_FILE = re.compile(r"_test(_\w+)?\.(h|cc)$")
SUPPORT = "tests/support"


class Arrows:
    def __init__(self, text):
        self.folders = {}  # folder -> folders it may include from
        self.headers = {}  # pattern -> folders or files that may name it
        table = None
        for line in text.splitlines():
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            if line in ("[folders]", "[headers]"):
                table = self.folders if line == "[folders]" else self.headers
                continue
            key, colon, values = line.partition(":")
            if table is None or not colon:
                raise ValueError(f"arrows.txt: not understood: {line}")
            table[key.strip()] = values.split()

    def home(self, path):
        """The folder of the table that a file belongs to, or None."""
        homes = [f for f in self.folders if path.startswith(f + "/")]
        return max(homes, key=len, default=None)

    def may_see(self, path, target_home):
        home = self.home(path)
        allowed = self.folders[home]
        if target_home == home or target_home in allowed or "*" in allowed:
            return True
        return bool(TEST_FILE.search(path)) and target_home == self.home(SUPPORT + "/x")

    def may_name(self, path, header):
        """True or False; None if the table does not know the header."""
        places = [p for pattern, ps in self.headers.items() if fnmatch.fnmatchcase(header, pattern) for p in ps]
        if not places:
            return None
        if TEST_FILE.search(path) and "tests" in places:
            return True
        return any(path == p or path.startswith(p + "/") for p in places)


def is_standard(header):
    return "/" not in header and "." not in header


def check(tree, arrows):
    for path in tree.with_suffix(".h", ".cc"):
        if arrows.home(path) is None:
            yield f"{path}:1: its folder has no line in tests/tidy/arrows.txt"
            continue
        for number, quote, name in tree.includes(path):
            where = f"{path}:{number}:"
            target = tree.find_include(path, quote, name)
            if target is not None:
                target_home = arrows.home(target)
                if not arrows.may_see(path, target_home):
                    yield f"{where} broken arrow: {arrows.home(path)} may not include {target_home} ({name})"
            elif quote == '"':
                yield f'{where} "{name}" is no file of this tree'
            elif not is_standard(name):
                allowed = arrows.may_name(path, name)
                if allowed is None:
                    yield f"{where} <{name}> has no line in tests/tidy/arrows.txt"
                elif not allowed:
                    yield f"{where} <{name}> may not be included here, see tests/tidy/arrows.txt"
