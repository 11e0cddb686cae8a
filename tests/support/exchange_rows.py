# SPDX-License-Identifier: Apache-2.0
"""Rows of the table exchanges."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def of_kind(trace: Any, kind: str) -> list[Row]:
    """Returns the exchanges of a kind."""
    return [row for row in trace.exchanges.rows() if row["kind"] == kind]


def turns_of(trace: Any) -> list[Row]:
    """Returns the requests in TCP connections, whatever their kind."""
    return [row for row in trace.exchanges.rows() if row["turn"] is not None]
