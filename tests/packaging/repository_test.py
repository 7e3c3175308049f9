"""What package managers, the forge and Docker read says the same as the tree.

repository_test.py SOURCE_FOLDER
"""

import ast
import glob
import json
import os
import re
import sys
import unittest

SOURCE = os.path.abspath(sys.argv[1])

# A library as Debian, vcpkg and Conan name it. The Conan recipe builds no tests, so it needs none of theirs.
NAMES = {
    "libxxhash-dev": (["xxhash"], "xxhash"),
    "librabbitmq-dev": (["librabbitmq"], "rabbitmq-c"),
    "libpq-dev": (["libpq"], "libpq"),
    "libmariadb-dev": (["libmariadb"], "mariadb-connector-c"),
    "libhiredis-dev": (["hiredis"], "hiredis"),
    "libcurl4-openssl-dev": (["curl"], "libcurl"),
    "libboost1.81-dev": (["boost-asio", "boost-beast"], "boost"),
    "libssl-dev": (["openssl"], "openssl"),
    "zlib1g-dev": (["zlib"], "zlib"),
    "libtomlplusplus-dev": (["tomlplusplus"], "tomlplusplus"),
    "libgtest-dev": (["gtest"], None),
    "librapidcheck-dev": (["rapidcheck"], None),
    "nlohmann-json3-dev": (["nlohmann-json"], None),
    "libboost-json1.81-dev": (["boost-json"], None),
}
NO_LIBRARY = {"libclang-rt-14-dev"}


def text(path):
    with open(f"{SOURCE}/{path}", encoding="utf-8") as file:
        return file.read()


def version():
    return re.search(r"project\(bide VERSION ([0-9.]+)", text("CMakeLists.txt"))[1]


def libraries(purpose):
    """The development packages that tools/packages.txt lists for it."""
    lines = [line.split() for line in text("tools/packages.txt").splitlines() if line and not line.startswith("#")]
    return {line[0] for line in lines if line[1] == purpose and line[0].endswith("-dev")} - NO_LIBRARY - {"dpkg-dev"}


def vcpkg_names(packages):
    return sorted(name for package in packages for name in NAMES[package][0])


class RepositoryTest(unittest.TestCase):
    def test_vcpkg_has_the_version_and_the_libraries_of_the_tree(self):
        manifest = json.loads(text("vcpkg.json"))
        self.assertEqual(manifest["version"], version())
        self.assertEqual(sorted(manifest["dependencies"]), vcpkg_names(libraries("run")))
        self.assertEqual(sorted(manifest["features"]["tests"]["dependencies"]), vcpkg_names(libraries("test")))

    def test_the_conan_recipe_has_the_libraries_of_the_tree_and_takes_the_version_from_cmake(self):
        recipe = text("conanfile.py")
        ast.parse(recipe)
        required = re.findall(r'self\.requires\("([a-z0-9-]+)/', recipe)
        self.assertEqual(sorted(required), sorted(NAMES[package][1] for package in libraries("run")))
        pattern = re.search(r're\.search\(r"([^"]+)", load\(self, "CMakeLists\.txt"\)\)', recipe)[1]
        self.assertEqual(re.search(pattern, text("CMakeLists.txt"))[1], version())
        for exported in re.search(r"exports_sources = (.*)", recipe)[1].split(", "):
            self.assertTrue(glob.glob(f"{SOURCE}/{exported.strip(chr(34))}"), exported)

    def test_changelogs_begin_with_the_version(self):
        self.assertRegex(text("CHANGELOG.md"), rf"\A# [^\n]*\n(?:[^#\n]*\n)*## {re.escape(version())}\b")
        self.assertRegex(text("packaging/changelog"), rf"\Abide \({re.escape(version())}-\d+\)")

    def test_workflows_run_the_test_of_everybody(self):
        for path in glob.glob(f"{SOURCE}/.github/workflows/*.yml"):
            with open(path, encoding="utf-8") as file:
                workflow = file.read()
            self.assertNotIn("\t", workflow)
            steps = re.findall(r"- run: (.*)", workflow)
            self.assertEqual(steps[-1], "./test", path)
            for key in ("name:", "on:", "permissions:", "jobs:"):
                self.assertRegex(workflow, rf"(?m)^{key}", path)
        self.assertTrue(os.access(f"{SOURCE}/test", os.X_OK))

    def test_issue_templates_have_the_head_that_the_forge_reads(self):
        templates = glob.glob(f"{SOURCE}/.github/ISSUE_TEMPLATE/*.md")
        self.assertGreaterEqual(len(templates), 2)
        for path in templates:
            with open(path, encoding="utf-8") as file:
                self.assertRegex(file.read(), r"\A---\nname: [^\n]+\nabout: [^\n]+\n---\n", path)

    def test_the_image_is_built_in_two_stages_and_runs_without_rights(self):
        lines = text("Dockerfile").splitlines()
        stages = [line for line in lines if line.startswith("FROM ")]
        self.assertEqual(stages, ["FROM debian:12-slim AS build", "FROM debian:12-slim"])
        last = lines[lines.index(stages[1]):]
        user = next(index for index, line in enumerate(last) if line.startswith("USER "))
        self.assertNotIn(last[user].split()[1], ("root", "0"))
        self.assertLess(user, next(index for index, line in enumerate(last) if line.startswith("ENTRYPOINT ")))
        self.assertTrue(any(line.startswith("HEALTHCHECK ") and "/healthz" in line for line in last))

    def test_yaml_is_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("PyYAML is not installed")
        for path in glob.glob(f"{SOURCE}/.github/**/*.yml", recursive=True):
            with open(path, encoding="utf-8") as file:
                self.assertIsInstance(yaml.safe_load(file), dict, path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
