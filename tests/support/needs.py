# SPDX-License-Identifier: Apache-2.0
"""Needs of tests beyond Python. Each function returns the reason why one is missing, or None; a test that needs it
is skipped with that reason: `skip_without(needs.root(), needs.programs("ip"))` in a test or fixture, `marked(...)` for a file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from checkout import ROOT

SECONDS = 60
# Programs whose package in Debian is named otherwise.
PACKAGES = {
    "capinfos": "wireshark-common",
    "chrt": "util-linux",
    "dpkg-deb": "dpkg",
    "dpkg-shlibdeps": "dpkg-dev",
    "insmod": "kmod",
    "ip": "iproute2",
    "iperf": "iperf",
    "linux.uml": "user-mode-linux",
    "mergecap": "wireshark-common",
    "mkfs.ext4": "e2fsprogs",
    "nft": "nftables",
    "ping": "iputils-ping",
    "promtool": "prometheus",
    "setpriv": "util-linux",
    "strip": "binutils",
    "sysctl": "procps",
    "systemd-analyze": "systemd",
    "tc": "iproute2",
    "trafgen": "netsniff-ng",
    "unshare": "util-linux",
}
#: Chromium of the tests: without the code of a window it needs 12% less CPU time
BROWSER = next(filter(shutil.which, ("chromium-headless-shell", "chromium")), "chromium")
NOT_INSTALLED = {"systemd"}  # packages that .ci/packages leaves out


def skip_without(*reasons: str | None) -> None:
    """Skips the test with the first reason."""
    for reason in reasons:
        if reason:
            pytest.skip(reason)


def marked(*reasons: str | None) -> pytest.MarkDecorator:
    """The same for every test of a file, as its `pytestmark`, or for one, as its decorator."""
    reason = next(filter(None, reasons), None)
    return pytest.mark.skipif(reason is not None, reason=str(reason))


def first(*reasons: str | None) -> str | None:
    """The first reason of several."""
    return next(filter(None, reasons), None)


def shared(name: str) -> Path:
    """Returns a file or folder of ../shared, captures made by others beside the repository; without it the test is skipped."""
    path = ROOT.parent / "shared" / name
    skip_without(None if path.exists() else f"needs ../shared/{name} beside the repository")
    return path


def shared_files(folder: str, pattern: str) -> list[Any]:
    """Returns the files of a folder of ../shared as parameters of a test; without them, one that is skipped with a reason."""
    paths = sorted((ROOT.parent / "shared" / folder).glob(pattern))
    reason = f"needs ../shared/{folder}/{pattern} beside the repository"
    skipped = pytest.param(ROOT.parent / "shared" / folder / "absent", marks=pytest.mark.skip(reason=reason))
    return [*paths] or [skipped]


def ci() -> str | None:
    """A source archive has the tests without .ci/."""
    return None if (ROOT / ".ci").is_dir() else "no .ci/ beside the tests"


def plain_processes() -> str | None:
    """Programs without a preloaded sanitizer: it fails in processes that other programs start or that have more rights."""
    return "a sanitizer is preloaded" if "WIRETALE_SANITIZED" in os.environ else None


def programs(*names: str) -> str | None:
    """Programs in PATH."""
    absent = sorted({PACKAGES.get(name, name) for name in names if not shutil.which(name)})
    installed = ": .ci/packages test" if set(absent) - NOT_INSTALLED else ""
    return f"needs {', '.join(absent)}{installed}" if absent else None


def package(name: str) -> str | None:
    """A package of Python; it is not imported, because each worker reads the files of all tests."""
    return None if find_spec(name) else f"needs {name}: pip install 'wiretale[test]'"


TSHARK = marked(programs("tshark"))


def root() -> str | None:
    """The rights of root."""
    return "needs root" if os.geteuid() else None


def proc() -> str | None:
    """The file system of processes: a plain chroot may have none."""
    return None if Path("/proc/self/status").exists() else "needs /proc"


def terminal() -> str | None:
    """Pseudo-terminals."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        return f"needs a pseudo-terminal: {error.strerror}"
    return None


def said_by(*command: str) -> str | None:
    """The reason why a command fails, or None if it succeeds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return (lines[-1] if lines else f"exit code {done.returncode}") if done.returncode else None


@cache
def network_namespaces() -> str | None:
    """Network namespaces that programs can run in: neither an ordinary user nor a plain chroot has them."""
    if reason := first(programs("ip"), root(), proc()):
        return reason
    name = f"wt-probe{os.getpid()}"
    try:
        reason = said_by("ip", "netns", "add", name) or said_by("ip", "netns", "exec", name, "true")
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=SECONDS)
    return f"needs network namespaces: {reason}" if reason else None


@cache
def user_namespaces() -> str | None:
    """User namespaces in which this user is root."""
    if reason := first(programs("unshare"), proc()):
        return reason
    reason = said_by("unshare", "--user", "--map-root-user", "true")
    return f"needs user namespaces: {reason}" if reason else None


@cache
def mounts() -> str | None:
    """The right to mount a file system."""
    if reason := first(programs("unshare", "mount"), root(), proc()):
        return reason
    with tempfile.TemporaryDirectory() as folder:
        reason = said_by("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", folder)
    return f"needs mounts: {reason}" if reason else None


@cache
def disk_images() -> str | None:
    """File systems in a file: many containers have no loop devices."""
    if reason := first(programs("mkfs.ext4"), mounts()):
        return reason
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder, "image")
        image.write_bytes(bytes(1 << 20))
        inside = ("unshare", "--mount", "mount", "-o", "loop", str(image), folder)
        reason = said_by("mkfs.ext4", "-q", str(image)) or said_by(*inside)
    return f"needs loop devices: {reason}" if reason else None


@cache
def browser() -> str | None:
    """A browser that starts."""
    if reason := first(programs(BROWSER), proc()):
        return reason
    with tempfile.TemporaryDirectory() as folder:
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom"]
        reason = said_by(BROWSER, *options, "about:blank")
    return f"needs a browser that starts: {reason}" if reason else None


def benchmarks() -> None:
    """Makes benchmarks/ importable. A test file is skipped if it is missing, as beside a wheel."""
    folder = ROOT / "benchmarks"
    if not folder.is_dir():
        pytest.skip("needs benchmarks/, which is not installed", allow_module_level=True)
    sys.path.insert(0, str(folder))
