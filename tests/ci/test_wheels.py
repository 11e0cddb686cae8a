# SPDX-License-Identifier: Apache-2.0
"""Wheels need nothing of the system but glibc, and a build from source names all that it lacks at once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import needs
from checkout import ROOT
from wiretale import system_packages
from wiretale.installation import library_command

GLIBC = re.compile(r"(libc|libm|libpthread|libdl|librt|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d")
LINKED = {"core": "setup.py", "wiretale-capture": "capture/Makefile", "wiretale-traffic": "traffic/Makefile"}
# A compiler without some headers, which it is told by the environment.
COMPILER = """#!/bin/sh
for word; do case $word in *.c) ! grep -qE "$MISSING" "$word" || exit 1 ;; esac; done
"""


def linked_archives(part: str) -> set[str]:
    """The libraries that a part is linked with, as names of archives."""
    text = (ROOT / LINKED[part]).read_text()
    if part == "core":
        matched = re.search(r"libraries=\[(.*)\]", text)
        names = re.findall(r'"(\w+)"', matched[1] if matched else "")
    else:
        matched = re.search(r"^LIBRARIES = (.*)", text, re.M)
        names = re.findall(r"-l([\w-]+)", matched[1] if matched else "")
    return {f"lib{name}.a" for name in names} - {"libm.a", "libpthread.a"}


@pytest.mark.parametrize("part", LINKED)
def test_each_linked_library_has_a_fixed_source(part: str) -> None:
    sources = tomllib.loads((ROOT / ".ci/wheels/sources.toml").read_text())["library"]
    assert {source["archive"] for source in sources if part in source["used_by"]} == linked_archives(part)
    assert all(re.fullmatch(r"[0-9a-f]{64}", source["sha256"]) and source["license"] for source in sources)


def test_wheels_need_only_glibc(tmp_path: Path) -> None:
    wheels = sorted((ROOT / "build/wheels").glob("*.whl"))
    if reason := needs.first(None if wheels else "needs wheels: make wheels", needs.programs("readelf")):
        pytest.skip(reason)
    for path in wheels:
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            wheel.extractall(tmp_path / path.stem)
        assert re.fullmatch(r"wiretale-[\d.]+-cp311-abi3-manylinux_2_28_(x86_64|aarch64)\.whl", path.name)
        native = [name for name in names if "/scripts/" in name or name.endswith(".so")]
        assert len(native) == 4
        for name in native:
            done = subprocess.run(
                ["readelf", "-d", tmp_path / path.stem / name], capture_output=True, text=True, check=True
            )
            dependencies = re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)
            assert dependencies and [library for library in dependencies if not GLIBC.fullmatch(library)] == []
        assert sum("/licenses/libraries/" in name for name in names) == 8
        assert len({info.date_time for info in zipfile.ZipFile(path).infolist()}) == 1


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (None, "wiretale needs a C compiler, and no-such-cc is missing: {install} gcc libc6-dev"),
        ("pcap.h|lz4frame.h", "wiretale needs pcap.h, lz4frame.h: {install} libpcap-dev liblz4-dev"),
        ("Python.h", "wiretale needs Python.h: {install} python3-dev"),
    ],
)
def test_a_build_names_all_that_it_lacks(tmp_path: Path, missing: str | None, message: str) -> None:
    (tmp_path / "cc").write_text(COMPILER)
    (tmp_path / "cc").chmod(0o755)
    if not shutil.which("apt-get"):
        pytest.skip("needs apt-get: another package manager has other names")
    compiler = {"CC": str(tmp_path / "cc"), "MISSING": missing} if missing else {"CC": "no-such-cc"}
    command = [sys.executable, "setup.py", "-q", "build", "--build-base", str(tmp_path / "built")]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **compiler}, capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.splitlines()[-1] == message.format(install="apt-get install")


@needs.marked(needs.ci())
def test_an_unknown_purpose_of_packages_is_an_error() -> None:
    done = subprocess.run([".ci/packages", "wheel"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, ".ci/packages: no such purpose: wheel\n")


@pytest.mark.parametrize(
    ("manager", "build", "run"),
    [
        ("apt-get", "apt-get install libzstd-dev nettle-dev", "apt-get install libpcap0.8 libzstd1"),
        (
            "dnf",
            "dnf install libzstd-devel nettle-devel",
            "dnf install 'libpcap.so.0.8()(64bit)' 'libzstd.so.1()(64bit)'",
        ),
        ("pacman", "pacman -S zstd nettle", "pacman -S libpcap zstd"),
        ("brew", "brew install zstd nettle", "brew install libpcap zstd"),
    ],
)
def test_packages_have_the_names_of_the_system(
    monkeypatch: pytest.MonkeyPatch, manager: str, build: str, run: str
) -> None:
    system_packages.manager.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == manager else None)
    try:
        assert system_packages.install_command("libzstd-dev", "nettle-dev") == build
        assert library_command(["libpcap.so.0.8", "libzstd.so.1"]) == run
    finally:
        system_packages.manager.cache_clear()
