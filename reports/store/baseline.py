# SPDX-License-Identifier: Apache-2.0
"""The baseline of `wiretale diff --store`: the captures of a store that a condition chooses, but not the new one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.diff.baseline import AgainstBaseline, against
from wiretale.analyzer.diff.baseline_runs import TABLES, measured_new, measured_stored
from wiretale.analyzer.diff.courses import connect_run
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.trace import is_lasting
from wiretale.reports.store.add import digest_of
from wiretale.reports.store.layout import options_in
from wiretale.reports.store.views import check_select, connect, consistent, failure

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from wiretale.analyzer.diff.baseline import RunMeasures
    from wiretale.analyzer.diff.run import Run
    from wiretale.analyzer.options import AnalysisOptions


INTERFACE = ("packets", "bytes", "first_ns", "last_ns")
# A capture is part of the new run if the new run has each of its interfaces.
SAME = """
SELECT capture_id FROM (SELECT * FROM interfaces WHERE packets > 0) AS i LEFT JOIN own_interfaces AS o ON i.packets = o.packets
    AND i.bytes = o.bytes AND epoch_ns(i.first_ns) = o.first_ns AND epoch_ns(i.last_ns) = o.last_ns
GROUP BY capture_id HAVING bool_and(o.packets IS NOT NULL)
"""


class Own(NamedTuple):
    """How captures of the new run are recognized in a store."""

    digests: set[str]
    #: columns of INTERFACE
    interfaces: list[tuple[int | None, ...]]


def own_of(run: Run) -> Own:
    """Returns the SHA-256 of the files of a run, and its interfaces, by which its tables and a copy of a file are recognized."""
    files = [Path(path) for path in (run.trace.inputs if run.trace else ()) if is_lasting(path)]
    try:
        digests = {digest_of(file) for file in files}
    except OSError as error:
        raise InputError(f"{run.path}: {error.strerror}") from None
    with connect_run(run, ("interfaces",)) as connection:
        columns = ", ".join(INTERFACE)
        return Own(digests, connection.execute(f"SELECT {columns} FROM interfaces WHERE packets > 0").fetchall())


def same_captures(connection: duckdb.DuckDBPyConnection, run: Own) -> set[str]:
    """Returns the captures of a store that are part of the new run."""
    columns = ", ".join(f"{name} BIGINT" for name in INTERFACE)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE own_interfaces ({columns})")
    if run.interfaces:
        connection.executemany(
            "INSERT INTO own_interfaces VALUES (?, ?, ?, ?)", [list(interface) for interface in run.interfaces]
        )
    return run.digests | {capture for (capture,) in connection.execute(SAME).fetchall()}


def chosen_captures(
    connection: duckdb.DuckDBPyConnection, where: str | None, run: Own
) -> tuple[list[tuple[str, int]], int]:
    """Returns the captures that meet a condition with their flows, and the number of those left out."""
    import duckdb

    same = same_captures(connection, run)
    condition = f"WHERE ({where}\n)" if where else ""
    try:
        sql = (
            f"SELECT capture_id, flows, damage IS NULL AND flows > 0 FROM captures {condition} ORDER BY day, capture_id"
        )
        check_select(connection, sql, "--where: expected one condition")
        listed = connection.execute(sql).fetchall()
    except duckdb.Error as error:
        raise failure("--where", error) from None
    captures = [(capture, flows) for capture, flows, complete in listed if complete and capture not in same]
    return captures, len(listed) - len(captures)


def baseline_of(folder: Path, where: str | None, run: Own) -> tuple[list[RunMeasures], int]:
    """Returns the measures of each run of the baseline, and the number of captures left out. Ctrl-C ends it at once."""
    import duckdb

    from wiretale.analyzer.query import interruptible

    with connect(folder, " ".join(("captures", "interfaces", *TABLES))) as connection:

        def work() -> tuple[list[RunMeasures], int]:
            captures, left_out = chosen_captures(connection, where, run)
            return measured_stored(connection, captures), left_out

        try:
            return interruptible(connection, work)
        except duckdb.Error as error:
            raise InputError(f"{folder}: {str(error).splitlines()[0]}; run `wiretale store check`") from None


def diff_with_store(
    folder: Path, where: str | None, load: Callable[[AnalysisOptions], Run], services: int
) -> AgainstBaseline:
    """Compares a run with the captures of a store; `load` analyzes one with their options. Raises InputError or UsageError."""
    after = load(options_in(folder))
    new = measured_new(after)
    run = own_of(after)
    runs, left_out = consistent(folder, lambda: baseline_of(folder, where, run))
    difference = against(after, new, str(folder), runs, services)
    difference.left_out = left_out
    return difference
