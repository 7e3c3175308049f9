"""bide as a Conan 2 package: conan create . --build=missing"""

import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import load


class BideConan(ConanFile):
    name = "bide"
    license = "MIT"
    description = "Durable background jobs for C++"
    topics = ("jobs", "queue", "background", "retry", "rabbitmq")
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False]}
    # Its static library has another CMake target.
    default_options = {"shared": False, "rabbitmq-c/*:shared": True}
    exports_sources = "CMakeLists.txt", "LICENSE", "bench/*", "cmake/*", "include/*", "packaging/*", "src/*"

    def set_version(self):
        self.version = re.search(r"project\(bide VERSION ([0-9.]+)", load(self, "CMakeLists.txt"))[1]

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("bide runs on Linux only")

    def requirements(self):
        self.requires("boost/[>=1.81 <2]", options={"header_only": True})
        self.requires("hiredis/[>=0.14 <2]")
        self.requires("libpq/[>=15]")
        self.requires("mariadb-connector-c/[>=3.3 <4]")
        self.requires("libcurl/[>=7.88 <9]")
        self.requires("openssl/[>=3 <4]")
        self.requires("rabbitmq-c/[>=0.11 <1]")
        self.requires("tomlplusplus/[>=3.3 <4]")
        self.requires("xxhash/[>=0.8 <1]")
        self.requires("zlib/[>=1.2 <2]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["BIDE_BUILD_TESTS"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # find_package(bide) takes the files that CMake installed.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/bide"]
        self.cpp_info.libs = ["bide"]
        self.cpp_info.system_libs = ["pthread"]
