# SPDX-License-Identifier: Apache-2.0
"""Builds the extension wiretale.analyzer._core, the C programs, man pages and completions; setup.cfg has the rest."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from glob import glob
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

from distutils.command.build_scripts import build_scripts  # isort: skip (setuptools brings distutils)
from distutils.command.install_data import install_data  # isort: skip

# Headers that must compile, and their Debian packages.
HEADERS = {
    "pcap.h": "libpcap-dev",
    "zlib.h": "zlib1g-dev",
    "zstd.h": "libzstd-dev",
    "lz4frame.h": "liblz4-dev",
    "sodium.h": "libsodium-dev",
    "nettle/aes.h": "nettle-dev",
    "seccomp.h": "libseccomp-dev",
    "cap-ng.h": "libcap-ng-dev",
}

WHOLE_PROGRAM = "-flto=auto"  # saves a sixth of the CPU time

# Programs, and the folders with their Makefiles.
PROGRAMS = {"wiretale-traffic": "traffic", "wiretale-capture": "capture", "wiretale-link": "traffic/link"}

# Installed files have no debug information. Developers set WIRETALE_CFLAGS, and then it should stay.
DEVELOPED = "WIRETALE_CFLAGS" in os.environ
INSTALLED = ["-Wl,--strip-debug"]

# Files of common/ that the core uses.
SHARED = ("common/json.c", "common/sequence_window.c", "common/utf8.c")

STAMP = runpy.run_path("analyzer/core_stamp.py")["stamp_of"]("analyzer")

CORE = Extension(
    "wiretale.analyzer._core",
    sources=sorted({*glob("analyzer/core/*/*.c"), *SHARED} - set(glob("analyzer/core/fuzz/*.c"))),
    depends=sorted(["analyzer/_core.pyi", *glob("analyzer/core/*/*.h"), *glob("common/*.h")]),
    include_dirs=[".", "analyzer/core"],
    libraries=["pcap", "z", "zstd", "lz4", "sodium", "nettle"],
    define_macros=[("Py_LIMITED_API", "0x030B0000"), ("CORE_STAMP", f'"{STAMP}"')],
    extra_compile_args=[
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-fvisibility=hidden",
        *os.environ.get("WIRETALE_CFLAGS", "").split(),  # -Werror, sanitizers
    ],
    extra_link_args=os.environ.get("WIRETALE_LDFLAGS", "").split() if DEVELOPED else INSTALLED,
    py_limited_api=True,
)


class BuildCore(build_ext):
    """Builds the extension. If a header is missing, the error must name its package."""

    def build_extensions(self) -> None:
        missing = [header for header in HEADERS if not self.header_compiles(header)]
        if missing:
            packages = " ".join(HEADERS[header] for header in missing)
            raise SystemExit(f"wiretale needs {', '.join(missing)}: apt-get install {packages}")
        if self.links_whole_program():
            CORE.extra_compile_args.append(WHOLE_PROGRAM)
            CORE.extra_link_args.append(WHOLE_PROGRAM)
        compile_one, link = self.compiler._compile, self.compiler.link
        running: list[Future[None]] = []

        def compile_said(target: str, source: str, *arguments: Any) -> None:
            print(f"compiling {source}", flush=True)
            compile_one(target, source, *arguments)

        def link_said(*arguments: Any, **options: Any) -> None:
            for compilation in running:
                compilation.result()
            print("linking all of it, optimized as one program", flush=True)
            link(*arguments, **options)

        # A compiler for each processor: setuptools starts one after the other.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.compiler._compile = lambda *arguments: running.append(pool.submit(compile_said, *arguments))
            self.compiler.link = link_said
            super().build_extensions()

    def links_whole_program(self) -> bool:
        """Returns whether link-time optimization works; it should be used, because packets pass through many small files."""
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text("int probe(void);\nint probe(void) { return 0; }\n")
            flags = [WHOLE_PROGRAM, "-O2", "-shared", "-fPIC", str(probe), "-o", f"{probe}.so"]
            command = [*self.compiler.compiler, *flags]
            return subprocess.run(command, capture_output=True).returncode == 0

    def header_compiles(self, header: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text(f"#include <{header}>\n")
            command = [*self.compiler.compiler, "-std=gnu11", "-fsyntax-only", str(probe)]
            return subprocess.run(command, capture_output=True).returncode == 0


class BuildPrograms(build_scripts):
    """Compiles the C programs into the folder of scripts, so that a wheel contains them and pip installs them in bin/."""

    def run(self) -> None:
        Path(self.build_dir).mkdir(parents=True, exist_ok=True)
        for name, folder in PROGRAMS.items():
            program = Path(self.build_dir, name).resolve()
            command = ["make", "-s", "-C", folder, f"PROGRAM={program}", f"LDFLAGS={' '.join(INSTALLED)}"]
            if subprocess.run(command).returncode:
                raise SystemExit(f"wiretale: {name} could not be compiled: see the compiler's errors above")

    def get_source_files(self) -> list[str]:
        """Returns no files, because MANIFEST.in lists the sources."""
        return []


class InstallManual(install_data):
    """Makes man pages and completions from the parsers and programs that were built, so that a wheel contains them."""

    def run(self) -> None:
        built = {name: self.get_finalized_command(name) for name in ("build", "build_scripts")}
        package, programs = (
            Path(place).resolve() for place in (built["build"].build_lib, built["build_scripts"].build_dir)
        )
        folder = Path(built["build"].build_base, "manual")
        places = {"PYTHONPATH": os.pathsep.join([str(package), *sys.path]), "WIRETALE_PROGRAMS": str(programs)}
        made = subprocess.run(
            [sys.executable, "-m", "wiretale.cli.manual", str(folder)],
            env={**os.environ, **places},
            capture_output=True,
            text=True,
        )
        if made.returncode:
            raise SystemExit(f"wiretale: man pages and completions could not be made: {made.stderr}")
        self.data_files = [
            (os.path.relpath(Path(file).parent, folder), [file])
            for file in made.stdout.splitlines()
            if Path(file).is_file()
        ]
        super().run()


# `make build` compiles native code itself; if it installs the package, WIRETALE_COMPILE is "no".
NATIVE = os.environ.get("WIRETALE_COMPILE") != "no"

setup(
    ext_modules=[CORE] if NATIVE else [],
    scripts=sorted(PROGRAMS) if NATIVE else [],
    data_files=[("share/doc/wiretale", ["LICENSE"])] if NATIVE else [],
    cmdclass={"build_ext": BuildCore, "build_scripts": BuildPrograms, "install_data": InstallManual},
)
