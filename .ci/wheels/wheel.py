# SPDX-License-Identifier: Apache-2.0
"""Builds wheels that need no library of the system but glibc, in build/wheels/: python wheel.py MACHINE...

Each is built twice, and both must be the same file. Its parts must need glibc only, and no newer one than its tag says. The
copyright files of the libraries inside are added to its licenses.
"""

from __future__ import annotations

import filecmp
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from libraries import ROOT, TARGETS, WHEELS, Target, build_all, run, tools

NEEDED = WHEELS / "needed"
VERDICT = re.compile(r"following\s+platform\s+tag:\s+\"(\w+)\"")


def build_wheel(target: Target, attempt: str) -> Path:
    """Returns a new wheel. The compiler's cache is shared, so a further attempt repeats everything but compiling."""
    folder = WHEELS / target.machine / attempt
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = WHEELS / target.machine / f"{attempt}.log"
    log.unlink(missing_ok=True)
    environment = {
        **tools(target),
        "SOURCE_DATE_EPOCH": committed(),
        "WIRETALE_STATIC_LIBRARIES": str(target.prefix),
        "_PYTHON_HOST_PLATFORM": f"linux-{target.machine}",
    }
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "build",
        "--build-base",
        str(folder),
        "egg_info",
        "--egg-base",
        str(folder),
    ]
    packed = ["bdist_wheel", "--plat-name", target.tag, "--dist-dir", str(folder / "bare")]
    run([*command, *packed], log, cwd=ROOT, env=environment)
    return with_licenses(target, next((folder / "bare").glob("*.whl")), folder, log, environment)


def committed() -> str:
    """Returns the time of the last commit, or of this file's first year outside of a checkout."""
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "1767225600"


def with_licenses(target: Target, wheel: Path, folder: Path, log: Path, environment: dict[str, str]) -> Path:
    """Packs a wheel again, with the copyright files of its libraries."""
    run([sys.executable, "-m", "wheel", "unpack", "-d", str(folder / "unpacked"), str(wheel)], log)
    content = next((folder / "unpacked").iterdir())
    licenses = next(content.glob("*.dist-info")) / "licenses" / "libraries"
    shutil.copytree(target.prefix / "licenses", licenses)
    run([sys.executable, "-m", "wheel", "pack", "-d", str(folder), str(content)], log, env=environment)
    return folder / wheel.name


def audit(wheel: Path, target: Target) -> None:
    """Ends the program if the wheel needs other libraries, or a newer glibc, than its tag allows."""
    done = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(wheel)], capture_output=True, text=True)
    platform = VERDICT.search(done.stdout)
    if not platform or not is_at_most(platform[1], target.tag):
        raise SystemExit(f"{done.stdout}{done.stderr}\nthe wheel is not {target.tag}")


def is_at_most(platform: str, tag: str) -> bool:
    """Returns whether a platform tag demands no newer glibc than another of the same machine."""
    pattern = re.compile(r"manylinux_(\d+)_(\d+)_(\w+)")
    left, right = pattern.fullmatch(platform), pattern.fullmatch(tag)
    return bool(
        left and right and left[3] == right[3] and (int(left[1]), int(left[2])) <= (int(right[1]), int(right[2]))
    )


def download_needed(target: Target) -> None:
    """Downloads the wheels that wiretale requires, for the Pythons of the roots in which it is tried."""
    if list(NEEDED.glob(f"duckdb*{target.machine}.whl")):
        return
    platforms = [f"--platform=manylinux_2_{minor}_{target.machine}" for minor in (28, 27, 17)]
    required = [line for line in metadata.requires("wiretale") or [] if ";" not in line]  # without those of extras
    for version in ("3.11", "3.13"):
        command = [sys.executable, "-m", "pip", "download", "-q", "-d", str(NEEDED), "--only-binary=:all:"]
        run([*command, f"--python-version={version}", *platforms, *required], WHEELS / "needed.log")


def main() -> None:
    for machine in sys.argv[1:]:
        target = TARGETS[machine]
        print(f"==> building the libraries of the wheel for {machine}", flush=True)
        build_all(target)
        print(f"==> building the wheel for {machine}, twice", flush=True)
        wheel, again = (build_wheel(target, attempt) for attempt in ("first", "second"))
        if not filecmp.cmp(wheel, again, shallow=False):
            raise SystemExit(f"two builds of a wheel are not the same: {wheel}, {again}")
        audit(wheel, target)
        download_needed(target)
        for older in WHEELS.glob(f"*{machine}.whl"):
            older.unlink()
        shutil.copyfile(wheel, WHEELS / wheel.name)
        print(f"==> {WHEELS / wheel.name}", flush=True)


if __name__ == "__main__":
    main()
