# SPDX-License-Identifier: Apache-2.0
"""Numbers of a direction of a flow in a table of DuckDB, with the run that they are of, and the distance of two samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from wiretale.analyzer.query import SETTINGS

Place = tuple[int, int, int]  # run, flow and direction
# The greatest distance of two empirical distributions. A value may be up to `slack` larger or smaller than its counterpart.
DISTANCE = """
WITH {parts},
up AS (SELECT max(a.f - coalesce(b.f, 0)) AS d FROM a ASOF LEFT JOIN b ON a.x + ? >= b.x),
down AS (SELECT max(b.f - coalesce(a.f, 0)) AS d FROM b ASOF LEFT JOIN a ON b.x + ? >= a.x)
SELECT greatest(up.d, down.d, 0)::DOUBLE FROM up, down
"""
PART = """
{name} AS (
    SELECT {column} AS x, sum(count(*)) OVER (ORDER BY {column}) / sum(count(*)) OVER () AS f FROM samples
    WHERE run = ? AND flow = ? AND direction = ? AND {column} IS NOT NULL GROUP BY {column}
)
"""
OF_PLACE = "FROM samples WHERE run = ? AND flow = ? AND direction = ?"


class Samples:
    """A table `samples` with the columns run, flow, direction, number, time_ns and others, which a subclass makes."""

    COLUMNS: tuple[str, ...] = ()
    LINE = ""  # the columns of a line of a file

    def __init__(self) -> None:
        self.connection = duckdb.connect(config=dict(SETTINGS))
        columns = ", ".join(f"{name} BIGINT" for name in ("flow", "direction", "number", "time_ns", *self.COLUMNS))
        self.connection.execute(f"CREATE TABLE samples (run INT, {columns})")

    def row(self, sql: str, values: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the first row of a result."""
        record: tuple[Any, ...] | None = self.connection.execute(sql, list(values)).fetchone()
        return record or ()

    def count(self, place: Place) -> int:
        """Returns the number of rows."""
        return int(self.row(f"SELECT count(*) {OF_PLACE}", place)[0])

    def first_ns(self, place: Place) -> int:
        """Returns the time of the first row, which must exist."""
        return int(self.row(f"SELECT min(time_ns) {OF_PLACE}", place)[0])

    def figures(self, column: str, place: Place) -> tuple[int, float | None, int | None]:
        """Returns the number of values of a column, their mean and their 90th percentile."""
        count, mean, most = self.row(
            f"SELECT count({column}), avg({column}), quantile_disc({column}, 0.9) {OF_PLACE}", place
        )
        return int(count), mean, most

    def lines(self, place: Place, most: int) -> list[tuple[int, ...]]:
        """Returns the lines in their order; of more than `most`, as many that are drawn: the same for the same capture."""
        order = "hash(number)" if self.count(place) > most else "number"
        drawn = f"SELECT * {OF_PLACE} ORDER BY {order} LIMIT ?"
        return list(
            self.connection.execute(f"SELECT {self.LINE} FROM ({drawn}) ORDER BY number", [*place, most]).fetchall()
        )

    def distance(self, column: str, first: Place, second: Place, slack: int = 0) -> float:
        """Returns the Kolmogorov-Smirnov distance of the column of two directions."""
        parts = ",".join(PART.format(name=name, column=column) for name in ("a", "b"))
        return float(self.row(DISTANCE.format(parts=parts), [*first, *second, slack, slack])[0])
