# SPDX-License-Identifier: Apache-2.0
"""Text from captures and file names, without characters that could steer a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Returns the text with control characters, also newlines, replaced by U+FFFD."""
    return text if text.isprintable() else "".join(c if c.isprintable() else REPLACEMENT for c in text)


def valid_text(text: str) -> str:
    """Returns the text with surrogates, which a file name that is not UTF-8 has, replaced by U+FFFD."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", REPLACEMENT, text)


@contextmanager
def utf8_name(folder: Path, plain: bool = False) -> Iterator[Path]:
    """Yields a UTF-8 path of the folder, because DuckDB accepts no other: its own, or that of an open descriptor.

    A `plain` path has no `a=b`, which DuckDB would read as a column.
    """
    try:
        is_refused = b"=" in str(folder).encode() and plain
    except UnicodeEncodeError:
        is_refused = True
    if is_refused:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield Path(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    else:
        yield folder
