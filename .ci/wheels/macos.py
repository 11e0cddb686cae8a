# SPDX-License-Identifier: Apache-2.0
"""Compiles the core for macOS on x86-64 and ARM64, as the compiler's errors are all that can be tested here."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from libraries import ROOT, TARGETS, WHEELS, build_all, tools, zig

FLAGS = [
    "-std=gnu11",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    '-DCORE_STAMP=""',
    "-DPy_LIMITED_API=0x030B0000",
]
SHARED = ("json.c", "sequence_window.c", "utf8.c")


def compile_one(machine: str, source: str) -> str:
    """Returns the errors of a source file."""
    target = TARGETS["x86_64"]  # of libraries, headers are the same everywhere
    places = [".", "analyzer/core", f"{target.prefix}/include", sysconfig.get_path("include")]
    out = WHEELS / "macos" / f"{machine}-{source.replace('/', '_')}.o"
    command = [str(zig()), "cc", "-target", f"{machine}-macos", *FLAGS, *(f"-I{place}" for place in places)]
    done = subprocess.run(
        [*command, "-c", source, "-o", str(out)], cwd=ROOT, env=tools(target), capture_output=True, text=True
    )
    return done.stderr if done.returncode else ""


def main() -> None:
    build_all(TARGETS["x86_64"])
    (WHEELS / "macos").mkdir(exist_ok=True)
    core = (path.relative_to(ROOT) for path in (ROOT / "analyzer/core").glob("*/*.c"))
    sources = [f"common/{name}" for name in SHARED] + sorted(str(path) for path in core if path.parent.name != "fuzz")
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for machine in ("x86_64", "aarch64"):
            errors = list(filter(None, pool.map(partial(compile_one, machine), sources)))
            print(
                f"==> macOS on {machine}: {len(sources) - len(errors)} of {len(sources)} files compile; not run",
                flush=True,
            )
            print(*errors, sep="\n", end="")
            failed += len(errors)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
