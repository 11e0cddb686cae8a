# SPDX-License-Identifier: Apache-2.0
"""Rows of a table as `analyze --json` has them."""

from __future__ import annotations

from typing import Any


def with_values(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without the columns that are null in all of them."""
    names = {name for row in rows for name, cell in row.items() if cell is not None}
    return [{name: cell for name, cell in row.items() if name in names} for row in rows]
