# SPDX-License-Identifier: Apache-2.0
"""Builds the extension wiretale.analyzer._core, the C programs, man pages and completions; setup.cfg has the rest."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

from distutils.ccompiler import new_compiler  # isort: skip (setuptools brings distutils)
from distutils.command.build_scripts import build_scripts  # isort: skip
from distutils.command.install_data import install_data  # isort: skip
from distutils.sysconfig import customize_compiler  # isort: skip

SYSTEM = runpy.run_path("src/wiretale/system_packages.py")
install_command, WSL = SYSTEM["install_command"], SYSTEM["WSL"]

# Headers that the core needs, and their Debian packages.
HEADERS = {
    "pcap.h": "libpcap-dev",
    "zlib.h": "zlib1g-dev",
    "zstd.h": "libzstd-dev",
    "lz4frame.h": "liblz4-dev",
    "sodium.h": "libsodium-dev",
    "nettle/aes.h": "nettle-dev",
}
CONFINING = {"seccomp.h": "libseccomp-dev", "cap-ng.h": "libcap-ng-dev"}

WHOLE_PROGRAM = "-flto=auto"  # saves a sixth of the CPU time

# Programs, the folders with their Makefiles, and the further headers without which they are left out.
PROGRAMS = {
    "wiretale-traffic": ("traffic", ["seccomp.h"]),
    "wiretale-capture": ("capture", ["seccomp.h", "cap-ng.h"]),
    "wiretale-link": ("traffic/link", []),
}

# A folder with include/ and lib/ of static libraries, for wheels that need none of the system (.ci/wheels).
STATIC = os.environ.get("WIRETALE_STATIC_LIBRARIES")
# For another processor, whose extension cannot be imported here.
FOREIGN = os.name == "posix" and not sysconfig.get_platform().endswith(os.uname().machine)

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
    include_dirs=[".", "analyzer/core", *([f"{STATIC}/include"] if STATIC else [])],
    library_dirs=[f"{STATIC}/lib"] if STATIC else [],
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


def finds(compiler: list[str], header: str) -> bool:
    """Returns whether the compiler finds a header."""
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe.c")
        probe.write_text(f"#include <{header}>\n")
        places = [f"-I{STATIC}/include"] if STATIC else []
        command = [*compiler, *places, "-E", str(probe), "-o", os.devnull]
        return subprocess.run(command, capture_output=True).returncode == 0


@cache
def system_compiler() -> list[str]:
    """Returns the command of the C compiler, which must exist, as must Python's headers and those of the core."""
    if sys.platform == "win32":
        raise SystemExit(WSL)
    compiler = new_compiler()
    customize_compiler(compiler)
    command: list[str] = compiler.compiler
    if not shutil.which(command[0]):
        raise SystemExit(
            f"wiretale needs a C compiler, and {command[0]} is missing: {install_command('gcc', 'libc6-dev')}"
        )
    missing = {header: package for header, package in HEADERS.items() if not finds(command, header)}
    if not finds([*command, f"-I{sysconfig.get_path('include')}"], "Python.h"):
        missing["Python.h"] = "python3-dev"
    if missing:
        raise SystemExit(f"wiretale needs {', '.join(missing)}: {install_command(*missing.values())}")
    return command


class Build(build):
    """Checks what must be installed before the first file is copied, so that an error is the only line."""

    def run(self) -> None:
        if NATIVE:
            system_compiler()
        super().run()


class BuildCore(build_ext):
    """Builds the extension."""

    def build_extensions(self) -> None:
        system_compiler()
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


class BuildPrograms(build_scripts):
    """Compiles the C programs into the folder of scripts, so that a wheel contains them and pip installs them in bin/.

    A program whose libraries are missing is left out, since the analyzer needs none of them."""

    def run(self) -> None:
        Path(self.build_dir).mkdir(parents=True, exist_ok=True)
        compiler = system_compiler()
        absent = {header for header in CONFINING if not finds(compiler, header)}
        if sys.platform != "linux":
            return print("the programs are left out, because they need Linux", flush=True)
        for name, (folder, needed) in PROGRAMS.items():
            if missing := [header for header in needed if header in absent]:
                command_text = install_command(*(CONFINING[header] for header in missing))
                print(f"{name} is left out without {', '.join(missing)}: {command_text}", flush=True)
                continue
            program = Path(self.build_dir, name).resolve()
            command = ["make", "-s", "-C", folder, f"PROGRAM={program}", f"LDFLAGS={' '.join(INSTALLED)}"]
            if STATIC:
                # with its libraries inside, so it opens none
                command[-1] += f" -L{STATIC}/lib"
                objects = Path(self.get_finalized_command("build").build_temp, name).resolve()
                command += ["OPENED=", f"CPPFLAGS=-I{STATIC}/include", f"BUILD={objects}"]
            if subprocess.run(command).returncode:
                raise SystemExit(f"wiretale: {name} could not be compiled: see the compiler's errors above")

    def get_source_files(self) -> list[str]:
        """Returns no files, because MANIFEST.in lists the sources."""
        return []


class InstallManual(install_data):
    """Makes man pages and completions from the parsers that were built, so that a wheel contains them."""

    def run(self) -> None:
        built = self.get_finalized_command("build")
        package, folder = Path(built.build_lib).resolve(), Path(built.build_base, "manual")
        made = subprocess.run(
            [sys.executable, "-m", "wiretale.cli.manual", str(folder)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*([] if FOREIGN else [str(package)]), *sys.path])},
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
    cmdclass={"build": Build, "build_ext": BuildCore, "build_scripts": BuildPrograms, "install_data": InstallManual},
)
