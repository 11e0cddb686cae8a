# SPDX-License-Identifier: Apache-2.0
"""Finds how this copy of wiretale was installed, and the command that restores a missing part of it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE_SECONDS = 20
# The message of the dynamic linker.
ABSENT_LIBRARY = re.compile(r"(?:^|[\s(])([\w.+-]+\.so[\w.]*): cannot open shared object file")
PACKAGE_EXCEPTIONS = {"libz.so.1": "zlib1g", "libstdc++.so.6": "libstdc++6", "libgcc_s.so.1": "libgcc-s1"}


def package_of_library(file: str) -> str:
    """Returns the Debian package of a shared library: libpcap0.8 for libpcap.so.0.8, liblz4-1 for liblz4.so.1.

    Debian 13 appended t64 to some names; apt-get still accepts the name without it.
    """
    stem, _, version = file.partition(".so")
    dash = "-" if stem[-1:].isdigit() else ""
    return PACKAGE_EXCEPTIONS.get(file) or f"{stem}{dash}{version.removeprefix('.')}".lower().replace("_", "-")


def missing_library(text: str) -> tuple[str, str] | None:
    """Returns the library that the dynamic linker did not find, and the command that installs it."""
    matched = ABSENT_LIBRARY.search(text)
    return (matched[1], f"apt-get install {package_of_library(matched[1])}") if matched else None


def explain_import(error: ImportError) -> str:
    """Returns the cause of a failed import and the command that fixes it, in one line."""
    if absent := missing_library(str(error)):
        library, command = absent
        return f"{library} is missing: {command}"
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
    plain = [re.split(r"\s*;", line)[0] for line in lines]
    return {re.split(r"[^\w.-]", line)[0]: line for line in plain}


def source_folder() -> Path | None:
    """Returns the checkout that this copy runs from, or None."""
    folder = Path(__file__).resolve().parents[2]
    return folder if (folder / "Makefile").is_file() and (folder / "setup.cfg").is_file() else None


def repair() -> str:
    """Returns the command that restores the files of wiretale."""
    folder = source_folder()
    if folder:
        return "make build" if folder == Path.cwd() else f"make -C {shlex.quote(str(folder))} build"
    package = debian_package()
    if package:
        return f"apt-get install --reinstall {package}"
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
