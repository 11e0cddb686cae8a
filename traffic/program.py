# SPDX-License-Identifier: Apache-2.0
"""Where the C programs of wiretale are."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from wiretale.analyzer.errors import MissingToolError

# What `wiretale COMMAND` runs, with the arguments that come before the user's.
PROGRAM_OF_COMMAND = {
    "send": ("wiretale-traffic", "send"),
    "receive": ("wiretale-traffic", "receive"),
    "ttcp": ("wiretale-traffic", "ttcp"),
    "capture": ("wiretale-capture",),
    "link": ("wiretale-link",),
}


def find_program(name: str) -> str:
    """The path of a program that was installed with wiretale: beside this Python, else in PATH.

    Raises MissingToolError where it is in neither.
    """
    beside = Path(sys.executable).parent / name
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
    if found is None:
        raise MissingToolError(f"{name} is neither in {beside.parent} nor in PATH: install wiretale again, or run `make build`")
    return found


def become_program(command: str, arguments: list[str]) -> NoReturn:
    """Replaces this process by the program of a command."""
    name, *first = PROGRAM_OF_COMMAND[command]
    program = find_program(name)
    sys.stdout.flush()
    try:
        os.execv(program, [program, *first, *arguments])
    except OSError as error:
        raise MissingToolError(f"{program} cannot be run: {error.strerror}") from None
