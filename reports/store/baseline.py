# SPDX-License-Identifier: Apache-2.0
"""The baseline of `wiretale diff --store`: the captures of a store that a condition chooses, but not the new one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer.diff.baseline import AgainstBaseline, against
from wiretale.analyzer.diff.baseline_runs import TABLES, measured_new, measured_stored
from wiretale.analyzer.diff.run import load_run
from wiretale.analyzer.errors import InputError
from wiretale.reports.store.add import digest_of
from wiretale.reports.store.layout import open_store
from wiretale.reports.store.views import check_select, connect, consistent, failure

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.diff.baseline import RunMeasures


def digests_of(path: str) -> set[str]:
    """Returns the SHA-256 of the capture, or of each file in a directory of captures."""
    try:
        files = sorted(Path(path).rglob("*")) if Path(path).is_dir() else [Path(path)]
        return {digest_of(file) for file in files if file.is_file()}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def chosen_captures(
    connection: duckdb.DuckDBPyConnection, where: str | None, own: set[str]
) -> tuple[list[tuple[str, int]], int]:
    """Returns the captures that meet a condition with their flows, and the number of those left out."""
    import duckdb

    condition = f"WHERE ({where}\n)" if where else ""
    try:
        sql = (
            f"SELECT capture_id, flows, damage IS NULL AND flows > 0 FROM captures {condition} ORDER BY day, capture_id"
        )
        check_select(connection, sql, "--where: expected one condition")
        found = connection.execute(sql).fetchall()
    except duckdb.Error as error:
        raise failure("--where", error) from None
    chosen = [(capture, flows) for capture, flows, whole in found if whole and capture not in own]
    return chosen, len(found) - len(chosen)


def baseline_of(folder: Path, where: str | None, own: set[str]) -> tuple[list[RunMeasures], int]:
    """Returns the measures of each run of the baseline, and the number of captures left out. Ctrl-C ends it at once."""
    import duckdb

    from wiretale.analyzer.query import interruptible

    with connect(folder, " ".join(("captures", *TABLES))) as connection:

        def work() -> tuple[list[RunMeasures], int]:
            chosen, left_out = chosen_captures(connection, where, own)
            return measured_stored(connection, chosen), left_out

        try:
            return interruptible(connection, work)
        except duckdb.Error as error:
            raise InputError(f"{folder}: {str(error).splitlines()[0]}; run `wiretale store check`") from None


def diff_with_store(folder: Path, where: str | None, path: str, services: int) -> AgainstBaseline:
    """Compares a run with the captures of a store. Raises InputError or UsageError."""
    open_store(folder)
    after = load_run(path, keep=True)
    new = measured_new(after)
    own = digests_of(path) if after.kind == "capture" else set()
    runs, left_out = consistent(folder, lambda: baseline_of(folder, where, own))
    found = against(after, new, str(folder), runs, services)
    found.left_out = left_out
    return found
