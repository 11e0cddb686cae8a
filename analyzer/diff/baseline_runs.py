# SPDX-License-Identifier: Apache-2.0
"""The measures of many runs from tables in DuckDB: of each capture, all flows together and each service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.diff.baseline import RunMeasures
from wiretale.analyzer.diff.courses import connect_run
from wiretale.analyzer.diff.measures import Values
from wiretale.analyzer.diff.run import BY_FLOW, SUMS, Run, data_share, number, ratio, sums_of, values_of
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings.transfers import PARTS

if TYPE_CHECKING:
    import duckdb

TABLES = ("flows", "directions", "findings", "handshakes", "exchanges")
FLOW_TIMES = tuple(f"time_{part}" for part in PARTS)
TIMES = {"flows": ("first_ns", "last_ns"), "directions": ("first_ns", "last_ns")}
# A key of 16 bytes takes less memory than 64 digits.
KEY = "substr(capture_id, 1, 32)::UUID"
NEW = "'00000000-0000-0000-0000-000000000000'::UUID"  # of a run that is in no store
FLOWS_MOST = 200_000  # whose measures are in memory at a time
FAILED = "('syn_sent', 'refused')"
ANSWERED = "('NOERROR', 'NXDOMAIN')"
MORE = f""", any_value(f.handshake_rtt_ns) AS handshake,
    any_value(f.state IN {FAILED}) FILTER (f.protocol = 'tcp' AND f.initiator_known) AS failed,
    sum(d.unseen_bytes) AS unseen_bytes, {", ".join(f"any_value(f.{name}_ns) AS {name}" for name in FLOW_TIMES)}"""
EACH_FLOW = f"""
CREATE OR REPLACE TEMP TABLE each_flow AS SELECT *, protocol || coalesce('/' || destination_port, '') AS service FROM
    ({BY_FLOW.format(keys="capture_id, flow", schema="one.", more=MORE)})
"""
GROUPS = "GROUP BY GROUPING SETS ((capture_id), (capture_id, service))"
MEASURED = f"""
SELECT capture_id, service, {sums_of((*SUMS, *FLOW_TIMES, "unseen_bytes"))},
    min(rtt_min) AS rtt_min, min(first_ns) AS first_ns, max(last_ns) AS last_ns, count(*) AS flows,
    median(handshake) AS handshake, 100 * avg(failed::INT) AS failed FROM each_flow {GROUPS}
"""
OF_FLOW = "JOIN (SELECT capture_id, flow, service FROM each_flow) USING (capture_id, flow)"
OTHERS = (
    f"""SELECT capture_id, service, median(waited_ns) FILTER (answered_frame IS NOT NULL) AS dns,
    100 * avg((code IS NULL OR code NOT IN {ANSWERED})::INT) AS dns_failed FROM one.exchanges {OF_FLOW}
    WHERE kind = 'dns' {GROUPS}""",
    f"SELECT capture_id, service, median(duration_ns) AS tls FROM one.handshakes {OF_FLOW} {GROUPS}",
    f"SELECT capture_id, service, median(server_ns) AS response FROM one.exchanges {OF_FLOW} WHERE turn IS NOT NULL {GROUPS}",
)


def measures_of(row: dict[str, Any]) -> Values:
    """Returns the measures of a row of MEASURED."""
    values, times = values_of(row), {name: number(row[name]) for name in FLOW_TIMES}
    limit_times = [value for value in times.values() if value is not None]
    packets = values["packets"]
    return {
        **values,
        "spurious_share": data_share(row, "spurious_retransmissions"),
        "upstream_loss": data_share(row, "lost_upstream"),
        "downstream_loss": data_share(row, "lost_downstream"),
        "unseen": ratio(number(row["unseen_bytes"]), number(row["bytes"]), 100.0),
        "reordering": ratio(values["out_of_order"], packets, 100.0),
        "zero_window_share": ratio(values["zero_windows"], packets, 100.0),
        "fragment_share": ratio(values["fragments"], packets, 100.0),
        "handshake": number(row["handshake"]),
        "failed": number(row["failed"]),
        **{name: ratio(value, sum(limit_times), 100.0) for name, value in times.items()},
        "flows": float(row["flows"]),
    }


def measured(connection: duckdb.DuckDBPyConnection) -> list[RunMeasures]:
    """Returns the measures of each capture in the views of the schema `one`."""
    from wiretale.analyzer.query import dicts

    connection.execute(EACH_FLOW)
    by_capture: dict[str, RunMeasures] = {}
    codes: dict[str, set[str]] = {}
    errors = "SELECT capture_id, code, count(*) FILTER (severity IN ('warning', 'error')) AS n FROM one.findings GROUP BY ALL"
    for row in dicts(connection, MEASURED):
        run = by_capture.setdefault(row["capture_id"], RunMeasures({}, {}, frozenset()))
        run.by_service[row["service"]] = measures_of(row)
        run.events[row["service"]] = number(row["data_packets"]) or number(row["packets"])
    for sql in OTHERS:
        for row in dicts(connection, sql):
            capture, service = row.pop("capture_id"), row.pop("service")
            by_capture[capture].by_service[service].update({name: number(value) for name, value in row.items()})
    for run in by_capture.values():
        run.by_service[None]["findings"] = 0.0
    for row in dicts(connection, errors):
        if run_found := by_capture.get(row["capture_id"]):
            values = run_found.by_service[None]
            values["findings"] = (values["findings"] or 0.0) + row["n"]
            codes.setdefault(row["capture_id"], set()).add(row["code"])
    return [run._replace(codes=frozenset(codes.get(capture, ()))) for capture, run in by_capture.items()]


def measured_new(run: Run) -> RunMeasures:
    """Returns the measures of a capture that load_run() kept, or of tables. Raises UsageError if the run is of another kind."""
    if run.trace is None and run.kind != "tables":
        raise UsageError(
            f"{run.path}: expected a capture or the output of `wiretale analyze -o`, because it has no flows"
        )
    with connect_run(run, TABLES) as connection:
        connection.execute("CREATE SCHEMA one")
        for name in TABLES:
            place = "main" if run.trace is None else "temp"
            connection.execute(f"CREATE TEMP VIEW one_{name} AS SELECT *, {NEW} AS capture_id FROM {place}.{name}")
            connection.execute(f"CREATE VIEW one.{name} AS FROM one_{name}")
        return next(iter(measured(connection)), RunMeasures({None: {}}, {}, frozenset()))


def measured_stored(connection: duckdb.DuckDBPyConnection, captures: Sequence[tuple[str, int]]) -> list[RunMeasures]:
    """Returns the measures of captures of a store, each with its number of flows. The connection has views of the tables."""
    connection.execute("CREATE SCHEMA one")
    runs: list[RunMeasures] = []
    for some in parts_of(captures):
        identifiers = ", ".join(f"'{capture}'" for capture in some)
        for name in TABLES:
            changed = [f"{KEY} AS capture_id", *(f"epoch_ns({time}) AS {time}" for time in TIMES.get(name, ()))]
            connection.execute(
                f"CREATE OR REPLACE VIEW one.{name} AS SELECT * REPLACE ({', '.join(changed)}) FROM main.{name} "
                f"WHERE capture_id IN ({identifiers})"
            )
        runs += measured(connection)
    return runs


def parts_of(captures: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Yields captures in groups of at most FLOWS_MOST flows, or of one capture."""
    part: list[str] = []
    flows = 0
    for capture, count in captures:
        if part and flows + count > FLOWS_MOST:
            yield part
            part, flows = [], 0
        part.append(capture)
        flows += count
    if part:
        yield part
