# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wiretale.analyzer.errors import OutputError


@contextmanager
def output_folder(folder: Path) -> Iterator[Path]:
    """A new folder to write into; its files move into `folder` when all went well, over those of the same names.

    OutputError, with nothing changed, when something cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    except OSError as error:
        raise OutputError(f"{folder}: cannot write into it: {error.strerror}") from None
    try:
        yield partial
        for file in sorted(path for path in partial.iterdir() if path.is_file()):
            os.replace(file, folder / file.name)
    except OSError as error:
        raise OutputError(f"{folder}: cannot write: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def output_file(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes `path` when all went well. OutputError otherwise, with `path` as it was."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
