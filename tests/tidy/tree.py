"""The files tidy looks at, and how an include finds its file."""

import re
from pathlib import Path

# Everything that is ours lies in one of these or directly in the root.
FOLDERS = [".ci", "bench", "cmake", "docs", "examples", "include", "packaging", "src", "tests", "tools", "web"]

# Bytes kept as they are, because a test is about exactly these bytes.
DATA_FOLDERS = {"corpus", "golden"}

INCLUDE_PATHS = ["include", "src", "tests", "."]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Tree:
    """Paths are strings relative to the root, with forward slashes."""

    def __init__(self, root):
        self.root = Path(root)
        self.paths = sorted(self._walk())
        self._known = set(self.paths)
        self._text = {}

    def _walk(self):
        candidates = [p for p in self.root.iterdir() if p.is_file()]
        for folder in FOLDERS:
            candidates += [p for p in (self.root / folder).rglob("*") if p.is_file()]
        for path in candidates:
            relative = path.relative_to(self.root)
            if "__pycache__" not in relative.parts:
                yield relative.as_posix()

    def __contains__(self, path):
        return path in self._known

    def with_suffix(self, *suffixes):
        return [p for p in self.paths if p.endswith(suffixes)]

    def text(self, path):
        """The file's text, or None if it is not text."""
        if path not in self._text:
            data = (self.root / path).read_bytes()
            try:
                self._text[path] = None if b"\0" in data else data.decode("utf-8")
            except UnicodeDecodeError:
                self._text[path] = None
        return self._text[path]

    def lines(self, path):
        """(number, line) of a text file; nothing of any other."""
        return list(enumerate((self.text(path) or "").split("\n"), start=1))

    def is_data(self, path):
        return not DATA_FOLDERS.isdisjoint(path.split("/")[:-1])

    def includes(self, path):
        """(line number, "<" or '"', name) of each include."""
        for number, line in self.lines(path):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1), match.group(2)

    def find_include(self, path, quote, name):
        """The file of ours that an include names, or None."""
        places = INCLUDE_PATHS if quote == "<" else [path.rpartition("/")[0] or "."] + INCLUDE_PATHS
        for place in places:
            candidate = name if place == "." else f"{place}/{name}"
            if candidate in self:
                return candidate
        return None
