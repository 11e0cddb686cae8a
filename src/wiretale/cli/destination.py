# SPDX-License-Identifier: Apache-2.0
"""Where results go, as options say it: `-` is standard output for a page, and never a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

STDOUT = Path("-")


def folder(text: str) -> Path:
    """A folder for several files, which standard output has no room for."""
    if text in ("", "-"):
        raise argparse.ArgumentTypeError(f"{text!r}: a folder was expected")
    return Path(text)


def page(text: str) -> Path:
    """A file, or `-`."""
    if not text:
        raise argparse.ArgumentTypeError("'': a file, or - for standard output, was expected")
    return Path(text)


def page_to_stdout(write: Callable[[Path], object]) -> None:
    """What `write` puts into the file that it is given, on standard output."""
    from shutil import copyfileobj
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as scratch:
        path = Path(scratch, "page.html")
        write(path)
        with path.open("rb") as written:
            copyfileobj(written, sys.stdout.buffer)
    sys.stdout.flush()
