# SPDX-License-Identifier: Apache-2.0
"""Text from captures and file names, unable to steer a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """The text with control characters, line ends among them, replaced by U+FFFD."""
    return text if text.isprintable() else "".join(c if c.isprintable() else REPLACEMENT for c in text)


def valid_text(text: str) -> str:
    """The text as UTF-8 can hold it: surrogates, as of a file name that is not UTF-8, replaced by U+FFFD."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", REPLACEMENT, text)


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
