# SPDX-License-Identifier: Apache-2.0
"""What an experiment came to, as its report takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """Plain rows and lines."""

    folder: str
    plan: Row
    rows: list[Row]  # of results.csv
    together: list[Row]  # of tests with several sessions: rates over time
    published: dict[str, list[Row]]
    failures: list[tuple[str, str]]
    started_ns: int
    tracer: str | None
    missing: int  # tests that were not run yet
