"""Rules for docs/architecture.md: its picture of the folders is the table of arrows, and the names it uses are there.

    python3 tests/tidy/architecture.py ROOT     writes the picture
"""

import re
import sys

from arrows import Arrows

PAGE = "docs/architecture.md"
BEGIN = "<!-- folders: written by tests/tidy/architecture.py from tests/tidy/arrows.txt -->\n"
END = "<!-- end of folders -->\n"
# What every folder may include is left out of the picture.
EVERYWHERE = "include/bide"


def short(folder):
    return folder.removeprefix("src/")


def level(folders, folder):
    """How many arrows lead down from it, one after the other."""
    return 1 + max((level(folders, below) for below in folders[folder] if below != folder), default=-1)


def picture(arrows):
    """A line for each folder, the highest first; all arrows lead down."""
    folders = {name: [f for f in below if f != EVERYWHERE] for name, below in arrows.folders.items()
               if name != EVERYWHERE and "*" not in below}
    levels = {name: level(folders, name) for name in folders}
    order = sorted(folders, key=lambda name: (-levels[name], name))
    width = max(len(short(name)) for name in order)
    lines = []
    for name in order:
        below = sorted(folders[name], key=order.index)
        targets = "   ".join(short(f) for f in below)
        lines.append(f"    {short(name):<{width}}  -->  {targets}" if below else f"    {short(name)}")
    return "\n".join(lines) + "\n"


def with_picture(page, arrows):
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + "\n" + picture(arrows) + "\n" + END + tail


def code_of(tree):
    return {path: tree.text(path) for path in tree.with_suffix(".h", ".cc") if path.startswith(("src/", "include/"))}


def unknown_names(page, code):
    """(line number, name) of each Type, Type::function and function() that no source of ours has."""
    everything = "\n".join(code.values())
    types = set(re.findall(r"\b(?:class|struct|enum class|using) (\w+)", everything))
    for number, line in enumerate(page.split("\n"), start=1):
        for owner, function in re.findall(r"\b([A-Z]\w+)::(\w+)", line):
            places = [text for text in code.values() if re.search(rf"\b{owner}\b", text)]
            if owner not in types or not any(re.search(rf"\b{function}\b", text) for text in places):
                yield number, f"{owner}::{function}"
        for name in re.findall(r"(?<![:\w])([A-Z][a-z]+(?:[A-Z][a-z]+)+)\b(?!::)", line):
            if name not in types and name not in FOREIGN:
                yield number, name
        for name in re.findall(r"(?<![:\w])([a-z]\w*)\(\)", line):
            if not re.search(rf"\b{name}\(", everything):
                yield number, f"{name}()"


# Names of others.
FOREIGN = {"GoogleTest", "RabbitMq"}


def check(tree, arrows):
    if PAGE not in tree:
        return
    page = tree.text(PAGE)
    if BEGIN not in page or END not in page:
        yield f"{PAGE}:1: has no picture of the folders"
    elif with_picture(page, arrows) != page:
        number = page[: page.index(BEGIN)].count("\n") + 1
        yield f"{PAGE}:{number}: the picture is not the table of arrows: python3 tests/tidy/architecture.py ."
    for number, name in unknown_names(page, code_of(tree)):
        yield f"{PAGE}:{number}: there is no {name}"


if __name__ == "__main__":
    from tree import Tree

    root = Tree(sys.argv[1])
    path = root.root / PAGE
    path.write_text(with_picture(path.read_text(encoding="utf-8"), Arrows(root.text("tests/tidy/arrows.txt"))),
                    encoding="utf-8")
