"""What is installed, and what is packaged, works without the tree it came from.

install_test.py BUILD_FOLDER SOURCE_FOLDER C++_COMPILER [unittest arguments]
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD, SOURCE, COMPILER = sys.argv[1:4]


def run(*words, **more):
    """The output of a command that must succeed."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def files_below(folder):
    return {os.path.relpath(os.path.join(path, name), folder)
            for path, _, names in os.walk(folder) for name in names}


class InstalledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="bide_install_test.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run("cmake", "--install", BUILD, "--prefix", f"{cls.folder}/first")
        # A prefix can be moved: whatever remembers where it was installed to, fails from here on.
        cls.prefix = f"{cls.folder}/moved"
        os.rename(f"{cls.folder}/first", cls.prefix)
        cls.package_folders = ":".join(glob.glob(f"{cls.prefix}/lib*/**/pkgconfig", recursive=True))

    def pkg_config(self, *words):
        environment = os.environ | {"PKG_CONFIG_PATH": self.package_folders}
        return run("pkg-config", *words, env=environment).split()

    def assert_greets(self, program):
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            self.assertEqual(run(program, f"{data}/jobs", timeout=60), "hello, world\n")

    def test_the_headers_are_those_of_include_bide_and_nothing_else(self):
        self.assertEqual(files_below(f"{self.prefix}/include"),
                         {f"bide/{name}" for name in files_below(f"{SOURCE}/include/bide")})

    def test_everything_lies_where_it_is_looked_for(self):
        installed = files_below(self.prefix)
        for name in ("bin/bide", "share/man/man1/bide.1", "share/bash-completion/completions/bide",
                     "share/zsh/site-functions/_bide", "share/fish/vendor_completions.d/bide.fish",
                     "share/doc/bide/LICENSE", "share/doc/bide/examples/bide.toml", "lib/systemd/system/bide.service"):
            self.assertIn(name, installed)
        self.assertEqual(len([name for name in installed if re.match(r"lib(/[^/]+)?/libbide\.(a|so)$", name)]), 1)

    def test_the_command_runs(self):
        self.assertRegex(run(f"{self.prefix}/bin/bide", "version"), r"^bide \d+\.\d+\.\d+\n$")

    def test_a_project_of_somebody_else_finds_it_with_cmake(self):
        build = f"{self.folder}/outside"
        run("cmake", "-G", "Ninja", "-S", f"{HERE}/project", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_BUILD_TYPE=Debug")
        run("cmake", "--build", build)
        with open(f"{build}/compile_commands.json", encoding="utf-8") as file:
            for command in json.load(file):
                self.assertNotRegex(command["command"], rf"-(I|isystem) ?{re.escape(SOURCE)}")
        self.assert_greets(f"{build}/plain")
        self.assert_greets(f"{build}/typed")

    def test_another_minor_version_is_not_what_was_asked_for(self):
        build = f"{self.folder}/wrong"
        os.mkdir(build)
        with open(f"{build}/CMakeLists.txt", "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES NONE)\n"
                       "find_package(bide 0.0 QUIET)\nmessage(STATUS \"found: ${bide_FOUND}\")\n")
        self.assertIn("found: 0", run("cmake", "-G", "Ninja", "-S", build, "-B", f"{build}/build",
                                      f"-DCMAKE_PREFIX_PATH={self.prefix}"))

    def test_a_compiler_finds_it_with_pkg_config(self):
        program = f"{self.folder}/by_pkg_config"
        run(COMPILER, "-std=c++20", f"{HERE}/project/main.cc", "-o", program, *self.pkg_config("--cflags", "--libs", "bide"))
        self.assert_greets(program)
        self.assertRegex(self.pkg_config("--modversion", "bide")[0], r"^\d+\.\d+\.\d+$")

    def test_every_header_compiles_with_nothing_of_the_tree_in_sight(self):
        names = sorted(files_below(f"{self.prefix}/include/bide"))
        source = "".join(f"#include <bide/{name}>\n" for name in names)
        run(COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c++", "-",
            *self.pkg_config("--cflags", "bide"), input=source, cwd=self.folder)

    def test_the_library_can_become_a_shared_one(self):
        archives = glob.glob(f"{self.prefix}/lib*/**/libbide.a", recursive=True)
        if not archives:
            self.skipTest("it is one already")
        libraries = [word for word in self.pkg_config("--libs-only-other", "--libs-only-l", "bide") if word != "-lbide"]
        run(COMPILER, "-shared", "-o", f"{self.folder}/libbide.so", "-Wl,--whole-archive", archives[0],
            "-Wl,--no-whole-archive", "-Wl,--no-undefined", *libraries)


class DebianPackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="bide_package_test.")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run("cpack", "--config", f"{BUILD}/CPackConfig.cmake", "-B", f"{cls.folder}/made")
        cls.packages = {os.path.basename(path).split("_")[0]: path for path in glob.glob(f"{cls.folder}/made/*.deb")}
        for name, path in cls.packages.items():
            run("dpkg-deb", "-x", path, f"{cls.folder}/{name}")

    def field(self, package, name):
        return run("dpkg-deb", "-f", self.packages[package], name).strip()

    def test_there_are_the_command_and_the_library(self):
        self.assertLessEqual({"bide", "libbide-dev"}, set(self.packages))

    def test_the_command_runs_from_the_package(self):
        self.assertRegex(run(f"{self.folder}/bide/usr/bin/bide", "version"), r"^bide \d+\.\d+\.\d+\n$")

    def test_the_command_depends_on_the_libraries_it_loads(self):
        depends = self.field("bide", "Depends")
        self.assertRegex(depends, r"libc6 \(>= ")
        self.assertRegex(depends, r"libstdc\+\+6 \(>= ")
        self.assertIn("libc6-dev", self.field("libbide-dev", "Depends"))

    def test_the_service_comes_with_a_configuration_that_is_the_users_own(self):
        self.assertTrue(os.path.exists(f"{self.folder}/bide/usr/lib/systemd/system/bide.service"))
        self.assertTrue(os.path.exists(f"{self.folder}/bide/etc/bide/bide.toml"))
        self.assertTrue(os.path.exists(f"{self.folder}/bide/usr/lib/sysusers.d/bide.conf"))
        control = f"{self.folder}/control"
        run("dpkg-deb", "-e", self.packages["bide"], control)
        with open(f"{control}/conffiles", encoding="utf-8") as file:
            self.assertEqual(file.read(), "/etc/bide/bide.toml\n")
        for script in ("postinst", "prerm", "postrm"):
            self.assertEqual(os.stat(f"{control}/{script}").st_mode & 0o777, 0o755, script)
            run("sh", "-n", f"{control}/{script}")

    def test_the_manual_page_is_compressed_and_renders(self):
        page = f"{self.folder}/bide/usr/share/man/man1/bide.1.gz"
        shown = run("man", "--warnings", "-l", page, env=os.environ | {"MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
        self.assertRegex(shown, r"(?m)^NAME$")
        self.assertIn("bide enqueue", shown)

    def test_each_has_its_copyright_and_a_changelog_of_the_same_version(self):
        for package in self.packages:
            documents = f"{self.folder}/{package}/usr/share/doc/{package}"
            self.assertEqual(files_below(documents), {"copyright", "changelog.Debian.gz"})
            with open(f"{documents}/copyright", encoding="utf-8") as file:
                self.assertIn("Permission is hereby granted", file.read())
            changes = run("gzip", "-dc", f"{documents}/changelog.Debian.gz")
            self.assertEqual(re.match(r"bide \((.+?)\)", changes)[1], self.field(package, "Version"))

    def test_everything_belongs_to_root_below_usr_and_nobody_else_can_write(self):
        for package, path in self.packages.items():
            for line in run("dpkg-deb", "-c", path).splitlines():
                mode, owner, *_, name = line.split(" -> ")[0].split()
                self.assertEqual(owner, "root/root", line)
                self.assertRegex(name, r"^\./((usr/(bin|include|lib|share)?.*)|etc/|etc/bide/|etc/bide/bide\.toml)?$")
                self.assertRegex(mode, r"^(l|d.{4}-..-.|-.{4}-..-.)", line)
            self.assertTrue(files_below(f"{self.folder}/{package}"))

    def test_no_file_names_the_folders_it_was_built_in(self):
        for package in self.packages:
            root = f"{self.folder}/{package}"
            for name in files_below(root):
                with open(f"{root}/{name}", "rb") as file:
                    content = file.read()
                for folder in (BUILD, SOURCE):
                    self.assertFalse(os.path.abspath(folder).encode() + b"/" in content, f"{folder} in {package}: {name}")

    def test_the_library_of_the_package_links(self):
        root = f"{self.folder}/libbide-dev/usr"
        folders = ":".join(glob.glob(f"{root}/lib/**/pkgconfig", recursive=True))
        flags = run("pkg-config", "--cflags", "--libs", "bide", env=os.environ | {"PKG_CONFIG_PATH": folders}).split()
        self.assertIn(f"-I{root}/include", [os.path.normpath(word) if word[:2] != "-I" else "-I" + os.path.normpath(word[2:])
                                            for word in flags])
        if len(self.packages) == 2:
            program = f"{self.folder}/from_package"
            run(COMPILER, "-std=c++20", f"{HERE}/project/main.cc", "-o", program, *flags)
            self.assertEqual(run(program, f"{self.folder}/jobs", timeout=60), "hello, world\n")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
