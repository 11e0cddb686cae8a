# SPDX-License-Identifier: Apache-2.0
"""The options that say where results go: `-` is standard output for a page, and never a folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

STDOUT = Path("-")


def folder(text: str) -> Path:
    """A folder for several files, which standard output has no room for."""
    if text in ("", "-"):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a folder")
    return Path(text)


def page(text: str) -> Path:
    """A file, or `-`."""
    if not text:
        raise argparse.ArgumentTypeError("'': expected a file, or - for standard output")
    return Path(text)


def add_overwrite(options: argparse._ActionsContainer) -> None:
    """The option that lets an output replace a capture."""
    options.add_argument("--overwrite", action="store_true", help="replace an existing capture file")


def print_page(text: str) -> None:
    """A page on standard output."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()


def note_written(path: Path) -> None:
    """Names a file or folder that was written, on stderr."""
    from wiretale.analyzer.printable import printable

    print(f"wiretale: wrote {printable(str(path))}", file=sys.stderr)
