# SPDX-License-Identifier: Apache-2.0
"""The native parts of the build: the extension wiretale.analyzer._core and the C programs. The rest is in setup.cfg."""

from __future__ import annotations

import os
import subprocess
import tempfile
from glob import glob
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

from distutils.command.build_scripts import build_scripts  # isort: skip (setuptools brings distutils)

# Header that must compile, and the Debian package that brings it.
HEADERS = {
    "pcap.h": "libpcap-dev",
    "zlib.h": "zlib1g-dev",
    "zstd.h": "libzstd-dev",
    "lz4frame.h": "liblz4-dev",
    "sodium.h": "libsodium-dev",
    "seccomp.h": "libseccomp-dev",
    "cap-ng.h": "libcap-ng-dev",
}

WHOLE_PROGRAM = "-flto=auto"  # a sixth less processor time

# The programs and the folders whose Makefile makes them.
PROGRAMS = {"wiretale-traffic": "traffic", "wiretale-capture": "capture", "wiretale-link": "traffic/link"}

# What is installed carries no debug information; those who develop it set WIRETALE_CFLAGS.
DEVELOPED = "WIRETALE_CFLAGS" in os.environ
INSTALLED = ["-Wl,--strip-debug"]

CORE = Extension(
    "wiretale.analyzer._core",
    sources=sorted({*glob("analyzer/core/*/*.c"), "common/sequence_window.c"} - set(glob("analyzer/core/fuzz/*.c"))),
    depends=sorted(glob("analyzer/core/*/*.h") + glob("common/*.h")),
    include_dirs=[".", "analyzer/core"],
    libraries=["pcap", "z", "zstd", "lz4"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=[
        *("-std=gnu11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden"),
        *os.environ.get("WIRETALE_CFLAGS", "").split(),  # -Werror and sanitizers, for those who develop it
    ],
    extra_link_args=os.environ.get("WIRETALE_LDFLAGS", "").split() if DEVELOPED else INSTALLED,
    py_limited_api=True,
)


class BuildCore(build_ext):
    """Says which package is missing before the compiler says a hundred other things."""

    def build_extensions(self) -> None:
        """Builds, once every header is there."""
        missing = [header for header in HEADERS if not self.header_compiles(header)]
        if missing:
            packages = " ".join(HEADERS[header] for header in missing)
            raise SystemExit(f"wiretale needs {', '.join(missing)}: apt-get install {packages}")
        if self.links_whole_program():
            CORE.extra_compile_args.append(WHOLE_PROGRAM)
            CORE.extra_link_args.append(WHOLE_PROGRAM)
        compile_one = self.compiler._compile

        def compile_said(target: str, source: str, *arguments: Any) -> None:
            print(f"compiling {source}", flush=True)
            compile_one(target, source, *arguments)

        self.compiler._compile = compile_said
        super().build_extensions()

    def links_whole_program(self) -> bool:
        """Whether compiler and linker work together at link time: a packet passes through many small files."""
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text("int probe(void);\nint probe(void) { return 0; }\n")
            command = [
                *self.compiler.compiler,
                WHOLE_PROGRAM,
                "-O2",
                "-shared",
                "-fPIC",
                str(probe),
                "-o",
                f"{probe}.so",
            ]
            return subprocess.run(command, capture_output=True).returncode == 0

    def header_compiles(self, header: str) -> bool:
        """Whether the compiler of this build finds the header."""
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text(f"#include <{header}>\n")
            command = [*self.compiler.compiler, "-std=gnu11", "-fsyntax-only", str(probe)]
            return subprocess.run(command, capture_output=True).returncode == 0


class BuildPrograms(build_scripts):
    """Compiles the C programs where scripts are taken from: a wheel carries them, and they land in bin/."""

    def run(self) -> None:
        """Calls the Makefile of each."""
        Path(self.build_dir).mkdir(parents=True, exist_ok=True)
        for name, folder in PROGRAMS.items():
            program = Path(self.build_dir, name).resolve()
            command = ["make", "-s", "-C", folder, f"PROGRAM={program}", f"LDFLAGS={' '.join(INSTALLED)}"]
            if subprocess.run(command).returncode:
                raise SystemExit(f"wiretale: {name} could not be compiled: see what the compiler says above")

    def get_source_files(self) -> list[str]:
        """What a source distribution needs of them is in MANIFEST.in."""
        return []


# `make build` compiles what is native itself: it installs the Python packages alone.
NATIVE = os.environ.get("WIRETALE_COMPILE") != "no"

setup(
    ext_modules=[CORE] if NATIVE else [],
    scripts=sorted(PROGRAMS) if NATIVE else [],
    cmdclass={"build_ext": BuildCore, "build_scripts": BuildPrograms},
)
