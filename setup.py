# SPDX-License-Identifier: Apache-2.0
"""The native part of the build: the extension wiretale.analyzer._core. The rest is in setup.cfg."""

from __future__ import annotations

import os
import subprocess
import tempfile
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Header that must compile, and the Debian package that brings it.
HEADERS = {
    "pcap.h": "libpcap-dev",
    "zlib.h": "zlib1g-dev",
    "zstd.h": "libzstd-dev",
    "lz4frame.h": "liblz4-dev",
}

CORE = Extension(
    "wiretale.analyzer._core",
    sources=sorted(glob("analyzer/core/*.c")),
    depends=sorted(glob("analyzer/core/*.h") + glob("traffic/*.h")),
    libraries=["pcap", "z", "zstd", "lz4"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=[
        *("-std=gnu11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden"),
        *os.environ.get("WIRETALE_CFLAGS", "").split(),  # -Werror and sanitizers, for those who develop it
    ],
    extra_link_args=os.environ.get("WIRETALE_LDFLAGS", "").split(),
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
        super().build_extensions()

    def header_compiles(self, header: str) -> bool:
        """Whether the compiler of this build finds the header."""
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text(f"#include <{header}>\n")
            command = [*self.compiler.compiler, "-std=gnu11", "-fsyntax-only", str(probe)]
            return subprocess.run(command, capture_output=True).returncode == 0


setup(ext_modules=[CORE], cmdclass={"build_ext": BuildCore})
