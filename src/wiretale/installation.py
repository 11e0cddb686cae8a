# SPDX-License-Identifier: Apache-2.0
"""Finds how this copy of wiretale was installed, and the command that restores a missing part of it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from wiretale.system_packages import LIBRARIES, MANAGERS, manager

PACKAGE_SECONDS = 20
# The message of the dynamic linker.
ABSENT_LIBRARY = re.compile(r"(?:^|[\s(])([\w.+-]+\.so[\w.]*): cannot open shared object file")
# A name in an ELF file's table of strings.
NEEDED_LIBRARY = re.compile(rb"\0(lib[\w.+-]+\.so\.[\d.]+)(?=\0)")
# The Debian packages of the C programs, which the package of the analyzer only recommends (debian/).
PACKAGE_OF_PROGRAM = {
    "wiretale-capture": "wiretale-capture",
    "wiretale-traffic": "wiretale-traffic",
    "wiretale-link": "wiretale-traffic",
}
PACKAGE_EXCEPTIONS = {"libz.so.1": "zlib1g", "libstdc++.so.6": "libstdc++6", "libgcc_s.so.1": "libgcc-s1"}


def package_of_library(file: str) -> str:
    """Returns the Debian package of a shared library: libpcap0.8 for libpcap.so.0.8, liblz4-1 for liblz4.so.1.

    Debian 13 appended t64 to some names; apt-get still accepts the name without it.
    """
    stem, _, version = file.partition(".so")
    dash = "-" if stem[-1:].isdigit() else ""
    return PACKAGE_EXCEPTIONS.get(file) or f"{stem}{dash}{version.removeprefix('.')}".lower().replace("_", "-")


def library_command(files: Sequence[str]) -> str:
    """Returns the command that installs shared libraries with the package manager of this machine."""
    name = manager()
    if name == "apt-get":
        names = [package_of_library(file) for file in files]
    elif name == "dnf":
        names = [f"'{file}()(64bit)'" for file in files]  # dnf finds the package
    else:
        stems = [file.partition(".so")[0] for file in files]
        names = [LIBRARIES.get(stem, stem) for stem in stems]
    return f"{MANAGERS[name]} {' '.join(dict.fromkeys(names))}"


def absent_library(text: str) -> str | None:
    """Returns the library that the dynamic linker did not find."""
    matched = ABSENT_LIBRARY.search(text)
    return matched[1] if matched else None


def absent_of(file: str | None) -> Iterator[str]:
    """Yields all libraries of an extension module that the dynamic linker does not find; its own message names only one."""
    import ctypes

    if not file or not Path(file).is_file():
        return
    for name in NEEDED_LIBRARY.findall(Path(file).read_bytes()):
        try:
            ctypes.CDLL(name.decode())
        except OSError as error:
            if absent := absent_library(str(error)):
                yield absent


def missing_libraries(text: str, file: str | None = None) -> tuple[str, str] | None:
    """Returns which libraries the dynamic linker did not find, all that a file lacks, and the command that installs them."""
    first = absent_library(text)
    if not first:
        return None
    files = list(dict.fromkeys([first, *absent_of(file)]))
    return f"{and_list(files)} {'are' if files[1:] else 'is'} missing", library_command(files)


def and_list(words: Sequence[str]) -> str:
    """Returns `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def explain_import(error: ImportError) -> str:
    """Returns the cause of a failed import and the command that fixes it, in one line."""
    if absent := missing_libraries(str(error), error.path):
        return ": ".join(absent)
    name = (error.name or "").partition(".")[0]
    if name in ("wiretale", "_core"):
        return f"the native core cannot be loaded ({error}): {repair()}"
    requirement = requirements().get(name)
    if isinstance(error, ModuleNotFoundError) and requirement:
        return f"the Python package {name} is missing: {sys.executable} -m pip install '{requirement}'"
    return f"{name or 'a Python package'} cannot be imported: {error}"


def requirements() -> dict[str, str]:
    """Returns the required Python packages with their bounds; no other package must ever be advised."""
    try:
        lines = metadata.requires("wiretale") or []
    except metadata.PackageNotFoundError:
        return {}
    plain = [re.split(r"\s*;", line)[0] for line in lines if not line.startswith("wiretale[")]
    return {re.split(r"[^\w.-]", line)[0]: line for line in plain}


def source_folder() -> Path | None:
    """Returns the checkout that this copy runs from, or None."""
    folder = Path(__file__).resolve().parents[2]
    return folder if (folder / "Makefile").is_file() and (folder / "setup.cfg").is_file() else None


def repair(program: str = "") -> str:
    """Returns the command that restores the files of wiretale, or brings one of its C programs."""
    folder = source_folder()
    if folder:
        return "make build" if folder == Path.cwd() else f"make -C {shlex.quote(str(folder))} build"
    package = debian_package()
    if package:
        return f"apt-get install --reinstall {PACKAGE_OF_PROGRAM.get(program, package)}"
    return f"{sys.executable} -m pip install --force-reinstall {wheel() or 'WHEEL'}"


def debian_package() -> str | None:
    """Returns the Debian package of this file, or None."""
    if not Path(__file__).is_relative_to("/usr/lib"):
        return None
    try:
        done = subprocess.run(["dpkg", "-S", __file__], capture_output=True, text=True, timeout=PACKAGE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.partition(":")[0] or None


def wheel() -> str | None:
    """Returns the wheel that pip installed, if it still exists. The name must not be looked up in a package index."""
    try:
        text = metadata.distribution("wiretale").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    address = urlsplit(json.loads(text)["url"]) if text else None
    path = unquote(address.path) if address and address.scheme == "file" else ""
    return shlex.quote(path) if path and Path(path).is_file() else None
