# SPDX-License-Identifier: Apache-2.0
"""Runs docs/notebook.ipynb and stores it with its outputs, which a forge shows: python .ci/notebook.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
FORMAT: Any = nbformat  # its functions have no types
#: plots as data: with a copy of Plotly's script, each would have 5 MB
RENDERER = {"PLOTLY_RENDERER": "plotly_mimetype"}


def executed(path: Path = NOTEBOOK) -> Any:
    """Returns the notebook after it has run, with its outputs and without times."""
    os.environ.update(RENDERER)
    notebook = FORMAT.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, record_timing=False, resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    return notebook


if __name__ == "__main__":
    FORMAT.write(executed(), NOTEBOOK)
    sys.exit(0)
