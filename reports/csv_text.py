# SPDX-License-Identifier: Apache-2.0
"""A table as CSV (RFC 4180) on a stream; null is empty."""

from __future__ import annotations

import csv
from operator import itemgetter
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table

ROWS_AT_ONCE = 4096  # a row of Python objects is large


def write_csv(table: Table, out: IO[str]) -> None:
    """Writes a line of column names and a line for each row."""
    names = [name for name, *_ in table.columns()]
    writer = csv.writer(out)
    writer.writerow(names)
    cells = itemgetter(*names)
    for start in range(0, len(table), ROWS_AT_ONCE):
        writer.writerows(map(cells, table.rows(start, start + ROWS_AT_ONCE)))
