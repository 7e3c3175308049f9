"""tidy: fails when the tree breaks one of its own rules. Run by ctest; prints path:line: what is wrong.

    python3 tests/tidy/tidy.py ROOT [--compiler g++ --cache FOLDER]

Without a compiler the headers are not compiled.
"""

import argparse
import sys
from pathlib import Path

import architecture
import arrows
import headers
import leftovers
import listings
import standard
from tree import Tree


def findings(root, compiler=None, cache=None):
    tree = Tree(root)
    yield from leftovers.check(tree)
    table = arrows.Arrows(tree.text("tests/tidy/arrows.txt"))
    yield from arrows.check(tree, table)
    yield from architecture.check(tree, table)
    yield from listings.check_sources(tree)
    yield from listings.check_links(tree)
    yield from standard.check(tree)
    if compiler:
        yield from headers.check(tree, compiler, Path(cache))


def main():
    parser = argparse.ArgumentParser(description="Checks the tree against its own rules.")
    parser.add_argument("root", type=Path)
    parser.add_argument("--compiler")
    parser.add_argument("--cache", default="tidy-cache")
    arguments = parser.parse_args()
    found = list(findings(arguments.root.resolve(), arguments.compiler, arguments.cache))
    for finding in found:
        print(finding)
    if found:
        print(f"error: {len(found)} untidy")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
