# SPDX-License-Identifier: Apache-2.0
"""Finds the C programs and other tools, and replaces this process by a C program."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from wiretale.analyzer.errors import MissingToolError
from wiretale.system_packages import install_command

# The program of `wiretale COMMAND`, and its first arguments, which are the command as the user typed it.
PROGRAM_OF_COMMAND = {
    "send": ("wiretale-traffic", "wiretale", "send"),
    "receive": ("wiretale-traffic", "wiretale", "receive"),
    "ttcp": ("wiretale-traffic", "wiretale traffic", "ttcp"),
    "path": ("wiretale-traffic", "wiretale traffic", "path"),
    "capture": ("wiretale-capture", "wiretale capture"),
    "find": ("wiretale-capture", "wiretale", "find"),
    "status": ("wiretale-capture", "wiretale", "status"),
    "link": ("wiretale-link", "wiretale traffic link"),
}

# Of a receiver whose only sender is started with it: it stays root, for buffers above the system's limit, and may serve for long
# and through pauses.
TRUSTED = ("--user", "root", "--max-time", "11d", "--min-rate", "0")

# Debian's packages of tools of other projects.
PACKAGES = {
    "ip": "iproute2",
    "ethtool": "ethtool",
    "tcpdump": "tcpdump",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "ssh": "openssh-client",
    "ping": "iputils-ping",
}
SYSTEM = "/usr/sbin:/sbin"  # not in every user's PATH


def program_path(name: str) -> str | None:
    """Returns the path of a program: in the directory WIRETALE_PROGRAMS, beside the Python interpreter (pip), or in PATH."""
    for folder in (os.environ.get("WIRETALE_PROGRAMS"), Path(sys.executable).parent):
        if folder and os.access(path := Path(folder, name), os.X_OK) and path.is_file():
            return str(path)
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM}")


def why_not_built(name: str) -> str:
    """Returns the command that brings a missing program of wiretale."""
    from wiretale.installation import debian_package, repair

    if sys.platform != "linux":
        return "it runs on Linux only"
    if debian_package():
        return repair(name)
    return f"{install_command('libseccomp-dev', 'libcap-ng-dev')}, without which it is left out, then install wiretale again"


def find_program(name: str) -> str:
    """Returns the path of a program. MissingToolError, with the command that installs it, if it is missing."""
    path = program_path(name)
    if path is None:
        command = install_command(PACKAGES[name]) if name in PACKAGES else why_not_built(name)
        raise MissingToolError(f"{name} is missing: {command} (it is not beside {sys.executable}, nor in PATH)")
    return path


def become_program(command: str, arguments: list[str]) -> NoReturn:
    """Replaces this process by the program of a command. MissingToolError if it cannot be run."""
    name, *first = PROGRAM_OF_COMMAND[command]
    program = find_program(name)
    sys.stdout.flush()
    try:
        os.execv(program, [*first, *arguments])
    except OSError as error:
        raise MissingToolError(f"{program} cannot be run: {error.strerror}") from None
