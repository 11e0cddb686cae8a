# SPDX-License-Identifier: Apache-2.0
"""Where the programs are that an experiment runs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError


def program_path(name: str) -> str | None:
    """The full path of a program: beside the Python interpreter, where pip puts ours, then in PATH."""
    beside = Path(sys.executable).parent / name
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which(name)


def find_program(name: str, mend: str = "install wiretale again") -> str:
    """The full path of a program. MissingToolError, with what mends it, when there is none."""
    path = program_path(name)
    if path is None:
        raise MissingToolError(f"{name} is not beside {sys.executable} and not in PATH: {mend}")
    return path
