# SPDX-License-Identifier: Apache-2.0
"""Writes the output that README.md and docs/ show in blocks of `console`: python .ci/shown_output.py [PAGE...]."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
blocks = importlib.import_module("document_blocks")


def main() -> int:
    pages = [Path(name).resolve() for name in sys.argv[1:]] or blocks.PAGES
    for page in filter(blocks.console_blocks, pages):
        with tempfile.TemporaryDirectory() as folder:
            blocks.write_page(page, blocks.make_place(Path(folder) / "place"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
