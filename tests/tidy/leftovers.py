"""Rules about the text itself: nothing left over, nothing oversized, no name that says nothing."""

import re

MAXIMUM_LINES = 600
NOT_COUNTED = (".json", ".txt", ".csv", ".svg")

# Put together from halves, so that this file does not find itself.
MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
MERGE = re.compile(r"^(<{7} |>{7} |={7}$|\|{7} )")
SWITCHED_OFF = [
    (re.compile(r"DIS" r"ABLED_"), "a test that is switched off"),
    (re.compile(r"^\s*#\s*if\s+0\b"), "code that is switched off"),
]
# In sources only: a header may show how a test is written.
COMMENTED_OUT = re.compile(r"^\s*//\s*(TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(")

# Whoever chooses the keys of a table with a public hash can make them share one place.
PUBLIC_HASH = re.compile(r"\bstd::unordered_(map|set)<(bide::)?(JobId|std::string|std::string_view)\b")

EMPTY_WORDS = {"util", "common", "base", "manager", "helper"}
EMPTY_WORDS |= {word + "s" for word in EMPTY_WORDS} | {"utilities", "utility"}
DECLARED = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:class|struct|namespace|enum class|enum)\s+(?:\[\[\w+\]\]\s*)?([\w:]+)")


def words_of_path(path):
    return re.split(r"[/._-]+", path.lower())


def words_of_name(name):
    return [w.lower() for w in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def check_lines(tree, path):
    text = tree.text(path)
    if text and not text.endswith("\n"):
        yield f"{path}:{text.count(chr(10)) + 1}: no newline at the end"
    for number, line in tree.lines(path):
        where = f"{path}:{number}:"
        if "\t" in line:
            yield f"{where} tab"
        if line != line.rstrip():
            yield f"{where} space at the end of the line"
        if MERGE.match(line):
            yield f"{where} merge marker"
        mark = MARKS.search(line)
        if mark:
            yield f"{where} leftover {mark.group(1)}: do it, or open an issue"


def check_code(tree, path):
    for number, line in tree.lines(path):
        where = f"{path}:{number}:"
        for pattern, what in SWITCHED_OFF:
            if pattern.search(line):
                yield f"{where} {what}"
        if path.endswith(".cc") and COMMENTED_OUT.match(line):
            yield f"{where} a test that is commented out"
        if path.startswith("src/") and "_test" not in path and PUBLIC_HASH.search(line):
            yield f"{where} a table over keys that a caller chooses: platform::KeyedMap, platform::KeyedSet"
        declared = DECLARED.match(line)
        if declared:
            empty = EMPTY_WORDS.intersection(words_of_name(declared.group(1)))
            if empty:
                yield f"{where} the name {declared.group(1)} says nothing ({empty.pop()})"


def check(tree):
    for path in tree.paths:
        empty = EMPTY_WORDS.intersection(words_of_path(path))
        if empty:
            yield f"{path}:1: the name says nothing ({empty.pop()})"
        if tree.is_data(path) or tree.text(path) is None:
            continue
        yield from check_lines(tree, path)
        if path.endswith((".h", ".cc")):
            yield from check_code(tree, path)
        count = tree.text(path).count("\n")
        if count > MAXIMUM_LINES and not path.endswith(NOT_COUNTED):
            yield f"{path}:{MAXIMUM_LINES}: {count} lines want to be two ideas"
