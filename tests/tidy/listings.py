"""Rules: a source is named by its folder's CMakeLists.txt, and a link in a document leads somewhere."""

import posixpath
import re

COMMENT = re.compile(r"#.*")
FENCE = re.compile(r"^\s*(```|~~~)")
INLINE_CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")


def check_sources(tree):
    for path in tree.with_suffix(".cc"):
        folder = posixpath.dirname(path)
        while folder and f"{folder}/CMakeLists.txt" not in tree:
            folder = posixpath.dirname(folder)
        listing = f"{folder}/CMakeLists.txt" if folder else "CMakeLists.txt"
        name = posixpath.relpath(path, folder or ".")
        text = COMMENT.sub("", tree.text(listing) or "") if listing in tree else ""
        text = text.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
        if not re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", text):
            yield f"{path}:1: not listed in {listing}, so it is never built"


def prose(tree, path):
    """(number, line) outside fenced code."""
    fenced = False
    for number, line in tree.lines(path):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(tree, path):
    """The fragments that a document's headings can be reached by."""
    found = set()
    for _, line in prose(tree, path):
        heading = HEADING.match(line)
        if heading:
            slug = re.sub(r"[^\w\- ]", "", heading.group(1).lower()).replace(" ", "-")
            count = 0
            while (slug if count == 0 else f"{slug}-{count}") in found:
                count += 1
            found.add(slug if count == 0 else f"{slug}-{count}")
    return found


def leads_nowhere(tree, path, link):
    target, _, fragment = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
    if target not in tree:
        return not (tree.root / target).is_dir()
    return bool(fragment) and target.endswith(".md") and fragment not in anchors(tree, target)


def check_links(tree):
    for path in tree.with_suffix(".md"):
        for number, line in prose(tree, path):
            for match in LINK.finditer(INLINE_CODE.sub("", line)):
                link = match.group(1) or match.group(2)
                if not ELSEWHERE.match(link) and leads_nowhere(tree, path, link):
                    yield f"{path}:{number}: the link {link} leads nowhere"
