"""Each rule of tidy fires on a small bad tree, and none fires on a small good one."""

import sys
import tempfile
import unittest
from pathlib import Path

import architecture
import tidy

COMPILER = "g++"

ARROWS = """
[folders]
include/bide:
src/core: include/bide
src/engine/check: include/bide
src/engine: include/bide src/core
tests: *
[headers]
gtest/*: tests
xxhash.h: src/engine
"""

GOOD = {
    "tests/tidy/arrows.txt": ARROWS,
    "include/bide/job.h": "#pragma once\n\n#include <string>\n\nstruct Job {\n  std::string kind;\n};\n",
    "src/core/ids.h": '#pragma once\n\n#include "bide/job.h"\n',
    "src/core/ids.cc": '#include "core/ids.h"\n',
    "src/core/ids_test.cc": '#include <gtest/gtest.h>\n\n#include "core/ids.h"\n#include "support/disk.h"\n',
    "src/core/CMakeLists.txt": "add_library(bide_core ids.cc)\nbide_test(ids_test ids_test.cc)\n",
    "src/engine/check/read.cc": '#include "bide/job.h"\n',
    "src/engine/hash.cc": '#include <xxhash.h>\n\n#include "core/ids.h"\n',
    "src/engine/CMakeLists.txt": "add_library(bide_engine\n  check/read.cc  # Alone.\n  hash.cc)\n",
    "tests/support/disk.h": "#pragma once\n",
    "docs/a.md": "# One thing\n\n[b](b.md) [there](b.md#the-other-thing) [out](https://example.com) [src](../src)\n",
    "docs/b.md": "## The other: thing\n\n```\n[no](link)\n```\n`[no](link)`\n",
}


def in_halves(*parts):
    """Keeps what tidy looks for out of this file."""
    return "".join(parts)


class TidyTest(unittest.TestCase):
    def findings(self, changes=None, compiler=None):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "tree"
            for path, content in {**GOOD, **(changes or {})}.items():
                if content is not None:
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
            return list(tidy.findings(root, compiler, Path(folder) / "cache"))

    def assert_found(self, changes, *expected, compiler=None):
        found = self.findings(changes, compiler)
        self.assertEqual(len(found), len(expected), found)
        for finding, (place, words) in zip(found, expected):
            self.assertTrue(finding.startswith(place + ":"), finding)
            self.assertIn(words, finding)

    def test_a_good_tree_is_tidy(self):
        self.assertEqual(self.findings(compiler=COMPILER), [])

    # Arrows.

    def test_an_include_against_an_arrow_is_found(self):
        self.assert_found({"src/core/ids.h": '#pragma once\n#include "engine/x.h"\n', "src/engine/x.h": "#pragma once\n"},
                          ("src/core/ids.h:2", "src/core may not include src/engine"))

    def test_a_subfolder_with_its_own_line_does_not_see_its_parent(self):
        self.assert_found({"src/engine/check/read.cc": '#include "engine/x.h"\n', "src/engine/x.h": "#pragma once\n"},
                          ("src/engine/check/read.cc:1", "src/engine/check may not include src/engine"))

    def test_an_include_by_neighbourhood_counts_too(self):
        self.assert_found({"src/engine/check/read.cc": '#include "../x.h"\n', "src/engine/x.h": "#pragma once\n"},
                          ("src/engine/check/read.cc:1", ""))

    def test_only_tests_may_include_the_tests_support(self):
        self.assert_found({"src/core/ids.cc": '#include "support/disk.h"\n'},
                          ("src/core/ids.cc:1", "src/core may not include tests"))

    def test_a_header_for_unit_tests_may_include_it_too(self):
        self.assertEqual(self.findings({"src/core/ids_test_bench.h": '#pragma once\n#include "support/disk.h"\n'}), [])

    def test_an_include_of_nothing_is_found(self):
        self.assert_found({"src/core/ids.cc": '#include "core/gone.h"\n'}, ("src/core/ids.cc:1", "no file of this tree"))

    def test_a_third_party_header_outside_its_home_is_found(self):
        self.assert_found({"src/core/ids.cc": "#include <xxhash.h>\n"}, ("src/core/ids.cc:1", "may not be included here"))

    def test_the_test_framework_in_a_source_that_is_no_test_is_found(self):
        self.assert_found({"src/core/ids.cc": "#include <gtest/gtest.h>\n"},
                          ("src/core/ids.cc:1", "may not be included here"))

    def test_a_header_the_table_does_not_know_is_found(self):
        self.assert_found({"src/core/ids.cc": "#include <unknown.h>\n"}, ("src/core/ids.cc:1", "has no line"))

    def test_a_folder_the_table_does_not_know_is_found(self):
        self.assert_found({"bench/x.h": "#pragma once\n"}, ("bench/x.h:1", "has no line"))

    # The page about the architecture.

    PICTURE = ("# bide\n" + architecture.BEGIN + "\n    engine        -->  core\n    core\n    engine/check\n\n" + architecture.END)

    def test_a_picture_that_is_the_table_and_names_that_are_there_are_fine(self):
        page = self.PICTURE + "`Job::kind`\n"
        self.assertEqual(self.findings({"docs/architecture.md": page}), [])

    def test_a_picture_that_is_not_the_table_of_arrows_is_found(self):
        self.assert_found({"docs/architecture.md": self.PICTURE.replace("-->  core", "-->  moon")},
                          ("docs/architecture.md:2", "not the table of arrows"))

    def test_a_page_without_a_picture_is_found(self):
        self.assert_found({"docs/architecture.md": "# bide\n"}, ("docs/architecture.md:1", "no picture"))

    def test_names_that_are_gone_are_found(self):
        page = self.PICTURE + "`Job::gone` `QueueOfOld` `old_function()`\n"
        number = page.count("\n")
        self.assert_found({"docs/architecture.md": page},
                          *[(f"docs/architecture.md:{number}", name) for name in ("Job::gone", "QueueOfOld", "old_function()")])

    # The standard library.

    def test_a_name_of_the_standard_library_without_its_header_is_found(self):
        self.assert_found({"src/core/ids.cc": "std::vector<int> all;\n"}, ("src/core/ids.cc:1", "<vector>"))

    def test_a_header_of_ours_may_bring_it_along(self):
        self.assertEqual(self.findings({"src/core/ids.cc": '#include "core/ids.h"\n\nstd::string name;\n'}), [])

    def test_comments_and_texts_use_nothing(self):
        self.assertEqual(self.findings({"src/core/ids.cc": '// std::vector\nconst char* x = "std::vector";\n'}), [])

    # Leftovers.

    def test_marks_of_unfinished_work_are_found(self):
        for mark in (("TO", "DO"), ("FIX", "ME"), ("X", "XX"), ("HA", "CK")):
            self.assert_found({"src/core/ids.cc": f"// {in_halves(*mark)}: later\n"}, ("src/core/ids.cc:1", "leftover"))

    def test_a_row_of_six_is_a_pattern_for_a_temporary_name_and_no_mark(self):
        self.assertEqual(self.findings({"src/core/ids.cc": 'const char* name = "bide-XXXXXX";\n'}), [])

    def test_merge_markers_are_found(self):
        self.assert_found({"docs/a.md": "<" * 7 + " ours\n" + "=" * 7 + "\n" + ">" * 7 + " theirs\n"},
                          ("docs/a.md:1", "merge"), ("docs/a.md:2", "merge"), ("docs/a.md:3", "merge"))

    def test_tabs_are_found(self):
        self.assert_found({"src/core/ids.cc": "\tint x;\n"}, ("src/core/ids.cc:1", "tab"))

    def test_space_at_the_end_of_a_line_is_found(self):
        self.assert_found({"docs/a.md": "word \n"}, ("docs/a.md:1", "space at the end"))

    def test_a_missing_final_newline_is_found(self):
        self.assert_found({"docs/a.md": "one\ntwo"}, ("docs/a.md:2", "no newline"))

    def test_a_long_file_is_found(self):
        self.assertEqual(self.findings({"src/core/ids.cc": "//\n" * 600}), [])
        self.assert_found({"src/core/ids.cc": "//\n" * 601}, ("src/core/ids.cc:600", "601 lines"))

    def test_file_names_that_say_nothing_are_found(self):
        for name in ("string_util.h", "common.h", "base.h", "job_manager.h", "test_helpers.h", "utils/x.h"):
            self.assert_found({f"src/core/{name}": "#pragma once\n"}, (f"src/core/{name}:1", "says nothing"))

    def test_type_names_that_say_nothing_are_found(self):
        for line in ("class JobManager {};", "struct StringUtil;", "namespace bide::helper {}", "class [[nodiscard]] Base {};"):
            self.assert_found({"src/core/ids.cc": line + "\n"}, ("src/core/ids.cc:1", "says nothing"))

    def test_words_that_only_contain_an_empty_word_are_fine(self):
        self.assertEqual(self.findings({"src/core/ids.cc": "struct Database;\nstruct Commonwealth;\n"}), [])

    def test_tables_that_a_caller_can_make_collide_are_found(self):
        head = '#include "bide/job.h"\n#include <unordered_map>\n#include <unordered_set>\n'
        for line in ("std::unordered_map<JobId, int> a;", "std::unordered_set<std::string> b;"):
            self.assert_found({"src/core/ids.cc": head + line + "\n"}, ("src/core/ids.cc:4", "KeyedMap"))
        self.assertEqual(self.findings({"src/core/ids.cc": head + "std::unordered_map<int, std::string> c;\n"}), [])

    def test_tests_that_are_switched_off_are_found(self):
        for line in (in_halves("TEST(A, DIS", "ABLED_B) {}"), "// TEST(A, B) {}", "#if 0"):
            self.assert_found({"src/core/ids_test.cc": line + "\n"}, ("src/core/ids_test.cc:1", ""))

    def test_a_header_may_show_a_test_in_a_comment(self):
        self.assertEqual(self.findings({"include/bide/testing.h": "//   TEST(A, B) {}\n\n#pragma once\n"}), [])

    def test_bytes_kept_for_a_test_may_be_anything(self):
        self.assertEqual(self.findings({"tests/fuzz/corpus/one": b"\t \xff", "tests/golden/two.txt": "\t"}), [])

    # Sources and links.

    def test_a_source_that_is_not_listed_is_found(self):
        self.assert_found({"src/core/more.cc": "\n"}, ("src/core/more.cc:1", "not listed in src/core/CMakeLists.txt"))

    def test_a_source_listed_in_a_comment_only_is_found(self):
        self.assert_found({"src/core/CMakeLists.txt": "add_library(bide_core ids_test.cc)  # ids.cc\n"},
                          ("src/core/ids.cc:1", "not listed"))

    def test_a_source_of_a_folder_without_a_list_is_found(self):
        self.assert_found({"src/engine/CMakeLists.txt": None}, ("src/engine/check/read.cc:1", "not listed in CMakeLists.txt"),
                          ("src/engine/hash.cc:1", "not listed in CMakeLists.txt"))

    def test_a_link_to_no_file_is_found(self):
        self.assert_found({"docs/a.md": "[x](gone.md)\n\n[y]: gone/too.md\n"},
                          ("docs/a.md:1", "gone.md leads nowhere"), ("docs/a.md:3", "gone/too.md leads nowhere"))

    def test_a_link_to_no_heading_is_found(self):
        self.assert_found({"docs/a.md": "[x](b.md#gone)\n"}, ("docs/a.md:1", "b.md#gone leads nowhere"))

    # Headers.

    def test_a_header_that_does_not_compile_alone_is_found(self):
        self.assert_found({"tests/support/disk.h": "#pragma once\nUnknown name();\n"},
                          ("tests/support/disk.h:1", "does not compile alone"), compiler=COMPILER)

    def test_a_header_that_a_source_includes_first_is_left_to_that_source(self):
        changes = {"src/core/ids.h": "#pragma once\nUnknown name();\n"}
        self.assertEqual(self.findings(changes, compiler=COMPILER), [])
        self.assert_found({**changes, "src/core/ids.cc": '#include <string>\n\n#include "core/ids.h"\n'},
                          ("src/core/ids.h:1", "does not compile alone"), compiler=COMPILER)

    def test_a_header_is_compiled_again_when_what_it_includes_has_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            root, cache = Path(folder) / "tree", Path(folder) / "cache"
            for path, content in GOOD.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            (root / "tests/support/disk.h").write_text('#pragma once\n#include "bide/job.h"\ninline Job job() { return {}; }\n')
            self.assertEqual(list(tidy.findings(root, COMPILER, cache)), [])
            (root / "include/bide/job.h").write_text("#pragma once\n")
            self.assertEqual(len(list(tidy.findings(root, COMPILER, cache))), 1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER = sys.argv.pop()
    unittest.main()
