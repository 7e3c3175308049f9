"""Rule: every header compiles alone.

A header that a source of ours includes before anything else is compiled alone whenever that source is, which the clang
preset does; that it includes what it uses of the standard library is a rule of its own (standard.py). Only the others are
compiled here.
"""

import hashlib
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from standard import DECLARES

FEW = 8  # Headers for which precompiling takes longer than it saves.
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def needs(tree, header):
    """The header and every file of ours that it includes, directly or not."""
    found, waiting = set(), [header]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            targets = (tree.find_include(path, quote, name) for _, quote, name in tree.includes(path))
            waiting += [t for t in targets if t is not None]
    return sorted(found)


def key(tree, header, compiler_version):
    digest = hashlib.sha256(repr((compiler_version, FLAGS, header)).encode())
    for path in needs(tree, header):
        digest.update(f"{path}\0{tree.text(path)}\0".encode())
    return digest.hexdigest()


def precompile_standard(folder, compiler):
    """A header with the standard library, precompiled: most of what a header of ours costs."""
    standard = Path(folder) / "standard.h"
    standard.write_text("".join(f"#include <{name}>\n" for name in DECLARES), encoding="utf-8")
    subprocess.run([compiler, *FLAGS, "-x", "c++-header", standard], check=True)
    return ["-include", str(standard)]


def compile_alone(tree, header, compiler, standard):
    """None, or the compiler's first error."""
    paths = [f"-I{tree.root / p}" for p in ("include", "src", "tests", ".")]
    result = subprocess.run(
        [compiler, *FLAGS, "-fsyntax-only", *standard, *paths, "-x", "c++", "-"],
        input=f'#include "{tree.root / header}"\n', capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None
    lines = [line for line in result.stderr.splitlines() if "error" in line] or ["it failed without a message"]
    return lines[0].replace(f"{tree.root}/", "")


def included_first(tree):
    """The headers that are the first include of a source."""
    first = set()
    for source in tree.with_suffix(".cc"):
        for _, quote, name in tree.includes(source):
            first.add(tree.find_include(source, quote, name))
            break
    return first


def check(tree, compiler, cache):
    """The cache is a folder with one empty file for each header that was seen to compile, named by content."""
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    proved = included_first(tree)
    marks = {header: cache / key(tree, header, version) for header in tree.with_suffix(".h")
             if header not in proved}
    waiting = [header for header, mark in marks.items() if not mark.exists()]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=2) as pool:
        standard = precompile_standard(folder, compiler) if len(waiting) > FEW else []
        errors = list(pool.map(lambda header: compile_alone(tree, header, compiler, standard), waiting))
    for header, error in zip(waiting, errors):
        if error is None:
            marks[header].touch()
        else:
            yield f"{header}:1: does not compile alone: {error}"
    for old in set(cache.iterdir()) - set(marks.values()):
        old.unlink()
