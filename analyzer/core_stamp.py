# SPDX-License-Identifier: Apache-2.0
"""The stamp that the compiled core shares with this Python: a checksum of the declarations that both use.

setup.py compiles it into the core. `git pull` brings C and Python to a checkout without compiling, so a core with another stamp
must not be used: its tables lack columns that Python reads. An installation has no declarations, and its core is of its release.
"""

from __future__ import annotations

import os
from zlib import crc32

DECLARATIONS = ("_core.pyi", "core/table/schema.h", "core/base/vocabulary.h", "core/pipeline/options.h")


def stamp_of(folder: str) -> str:
    """Returns the checksum of the declarations in the folder of this file, or "" if there are none."""
    checksum = 0
    for name in DECLARATIONS:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                checksum = crc32(file.read(), checksum)
        except FileNotFoundError:
            return ""
    return f"{checksum:08x}"


def check_core() -> None:
    """Raises ImportError if the core was compiled from other declarations than this checkout has."""
    from wiretale.analyzer import _core

    expected = stamp_of(os.path.dirname(__file__))
    if expected and getattr(_core, "STAMP", None) not in ("", expected):  # "" if it was not compiled by setup.py
        raise ImportError("it was compiled from an older version of the sources", name="_core")
