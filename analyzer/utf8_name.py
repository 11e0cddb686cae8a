# SPDX-License-Identifier: Apache-2.0
"""Folders whose name is not UTF-8, for DuckDB, which accepts no other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def utf8_name(folder: Path) -> Iterator[Path]:
    """A name of the folder in UTF-8, valid inside the block: its own, or that of an open descriptor."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield Path(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    else:
        yield folder
