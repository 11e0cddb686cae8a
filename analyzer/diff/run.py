# SPDX-License-Identifier: Apache-2.0
"""Loads a run for wiretale diff: a capture, a folder of captures, tables of an analysis, an experiment, or reports."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.compare.endpoint_log import part, read_reports
from wiretale.analyzer.diff.measures import Values
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.findings.model import ON_WIRE, SYN_FIN, endpoint_str
from wiretale.analyzer.findings.transfers import PARTS
from wiretale.analyzer.options import NO_OPTIONS, AnalysisOptions
from wiretale.analyzer.printable import utf8_name

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.trace import Trace

TABLES = ("interfaces", "flows", "directions", "findings")
# Columns that are timestamps in Parquet.
TIMES = {
    **dict.fromkeys(("interfaces", "flows", "directions"), ("first_ns", "last_ns")),
    "series": ("start_ns",),
    "events": ("time_ns",),
}
FLOWS_MAX = 100_000
# throughput_bps leaves out the duplicates of a mirror port
IP_BYTES = """CASE WHEN d.mirror_duplicates > 0 AND d.throughput_bps IS NOT NULL
    THEN d.throughput_bps::DOUBLE * (d.last_ns - d.first_ns) / 8e9 ELSE d.ip_bytes END"""
PAYLOAD = """CASE WHEN d.mirror_duplicates > 0
    THEN coalesce(d.unique_bytes + d.retransmitted_bytes, d.payload_bytes) ELSE d.payload_bytes END"""
NUMBERED = "coalesce(blocks, 0) + coalesce(blocks_lost, 0)"


def of_direction_with_most(count: str, value: str) -> str:
    """Returns SQL: a column of the direction in which another is greatest; of two that are equal, the first."""
    return f"arg_max(d.{value}, (d.{count}, d.direction = 0)) FILTER (d.{count} IS NOT NULL)"


# One flow. RTTs are those of the direction with most samples. A null of one direction counts as 0, unless both are null.
BY_FLOW = f"""
SELECT {{keys}}, any_value(f.protocol) AS protocol, any_value(f.source) AS source, any_value(f.source_port) AS source_port,
    any_value(f.destination) AS destination, any_value(f.destination_port) AS destination_port, any_value(f.path) AS path,
    {of_direction_with_most("payload_bytes", "goodput_bps")} AS goodput,
    {of_direction_with_most("payload_bytes", "throughput_bps")} AS throughput,
    sum(d.goodput_bps::DOUBLE * (d.last_ns - d.first_ns)) / 8e9 AS useful_bytes, sum({IP_BYTES}) AS ip_bytes,
    min(f.first_ns) AS first_ns, max(f.last_ns) AS last_ns,
    {", ".join(f"sum(coalesce(d.{ON_WIRE[name]}, d.{name})) AS {name}" for name in ON_WIRE)},
    {", ".join(f"sum(d.{name}) AS {name}" for name in SYN_FIN.values())},
    sum(d.blocks_lost) AS blocks_lost,
    sum({NUMBERED}) FILTER (blocks IS NOT NULL) AS numbered,
    {of_direction_with_most("rtt_samples", "rtt_ns_min")} AS rtt_min,
    {of_direction_with_most("rtt_samples", "rtt_ns_median")}::DOUBLE * max(d.rtt_samples) AS rtt_median,
    {of_direction_with_most("rtt_samples", "rtt_ns_p99")}::DOUBLE * max(d.rtt_samples) AS rtt_p99,
    max(d.rtt_samples) FILTER (d.rtt_ns_median IS NOT NULL) AS samples,
    sum(d.jitter_ns::DOUBLE * d.blocks) AS jitter, sum(d.blocks) FILTER (d.jitter_ns IS NOT NULL) AS jittered,
    sum(coalesce(d.out_of_order, 0) + coalesce(d.blocks_out_of_order, 0)) AS out_of_order, sum(d.fragments) AS fragments,
    sum(d.incomplete_datagrams) AS incomplete_datagrams, sum(d.zero_windows) AS zero_windows,
    sum(d.packets) AS packets, sum({PAYLOAD}) AS bytes {{more}}
FROM {{schema}}flows AS f JOIN {{schema}}directions AS d USING ({{keys}}) GROUP BY {{keys}}
"""
SUMS = (
    *("useful_bytes", "ip_bytes", *ON_WIRE, *SYN_FIN.values()),
    *("blocks_lost", "numbered", "rtt_median", "rtt_p99", "samples", "jitter", "jittered", "out_of_order", "fragments"),
    *("incomplete_datagrams", "zero_windows", "packets", "bytes"),
)
FRACTIONS = frozenset(("useful_bytes", "rtt_median", "rtt_p99", "jitter"))


def sums_of(names: Iterable[str]) -> str:
    """Returns SQL: the sums of columns. Those of fractions are compensated: they do not depend on the order of threads."""
    return ", ".join(f"{'fsum' if name in FRACTIONS else 'sum'}({name}) AS {name}" for name in names)


TOTAL = f"""
SELECT {sums_of(SUMS)}, min(rtt_min) AS rtt_min, min(first_ns) AS first_ns,
    max(last_ns) AS last_ns, count(*) AS flows FROM each_flow
"""


@dataclass
class Part:
    """A flow of a run or a test of the generator: keys, the most specific first, and measures."""

    label: str
    keys: tuple[tuple[object, ...], ...]
    size: float
    values: Values
    #: row of the flows table; None for a test of the generator
    flow: int | None = None


FLOW_TIMES = f"SELECT {', '.join(f'sum(time_{part}_ns) AS time_{part}' for part in PARTS)} FROM flows"


class RunFinding(NamedTuple):
    """A finding of a run."""

    code: str
    severity: str
    sentence: str
    cost: float | None
    cost_unit: str | None


@dataclass
class Run:
    """The measures and findings of one run.

    >>> import wiretale
    >>> difference = wiretale.diff("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")
    >>> difference.before.kind, difference.before.total["packets"], difference.after.total["packets"]
    ('capture', 342.0, 251.0)
    """

    path: str
    #: capture, tables, reports or experiment
    kind: str
    total: Values
    parts: list[Part] = field(default_factory=list)
    findings: list[RunFinding] = field(default_factory=list)
    damaged: bool = False
    #: ns by part (names of PARTS) over all flows; None if unknown
    times: Values = field(default_factory=dict)
    #: a capture's analysis, if load_run() was to keep it
    trace: Trace | None = None
    #: the sentence of a capture's answer
    answer: str = ""


def ratio(part_of: float | None, total: float | None, factor: float = 1.0) -> float | None:
    """Returns a quotient; None if unknown."""
    return None if part_of is None or not total else factor * part_of / total


def data_share(row: dict[str, Any], column: str) -> float | None:
    """Returns the percentage of the data segments that a column counts, without SYNs and FINs; None if unknown."""
    count, total = number(row[column]), number(row["data_packets"])
    return None if count is None else ratio(count - (number(row[SYN_FIN[column]]) or 0), total, 100.0)


def number(value: Any) -> float | None:
    """Returns a float; DuckDB returns sums as decimals."""
    return None if value is None else float(value)


def values_of(row: dict[str, Any]) -> Values:
    """Returns the measures of one flow or of all."""
    r = {name: number(value) for name, value in row.items() if name in {*SUMS, "rtt_min", "first_ns", "last_ns"}}
    span = int(row["last_ns"] - row["first_ns"]) if row["first_ns"] is not None else None
    plain = ("lost_upstream", "lost_downstream", "blocks_lost", "rtt_min", "out_of_order", "fragments")
    return {
        "goodput": ratio(r["useful_bytes"], span, 8e9),
        "throughput": ratio(r["ip_bytes"], span, 8e9),
        "retransmissions": data_share(r, "retransmissions"),
        "spurious": r["spurious_retransmissions"],
        "block_loss": ratio(r["blocks_lost"], r["numbered"], 100.0),
        "rtt_median": ratio(r["rtt_median"], r["samples"]),
        "rtt_p99": ratio(r["rtt_p99"], r["samples"]),
        "jitter": ratio(r["jitter"], r["jittered"]),
        "duration": span,
        **{name: r[name] for name in (*plain, "incomplete_datagrams", "zero_windows", "packets", "bytes")},
    }


def flow_part(row: dict[str, Any]) -> Part:
    """Returns a flow. Its goodput is that of the direction with more payload, over that direction's time."""
    ends = endpoint_str(row["source"], row["source_port"]), endpoint_str(row["destination"], row["destination_port"])
    values = {**values_of(row), "goodput": number(row["goodput"]), "throughput": number(row["throughput"])}
    keys = (
        (row["protocol"], *ends, row["path"]),
        (row["protocol"], row["source"], row["destination"], row["destination_port"]),
        (row["protocol"], row["destination_port"]),
        (row["protocol"],),
    )
    return Part(f"{row['protocol']} {ends[0]} → {ends[1]}", keys, float(row["bytes"] or 0), values, row["flow"])


def run_of_tables(connection: duckdb.DuckDBPyConnection, path: str, kind: str, legs: Iterable[int] = ()) -> Run:
    """Returns a run from the tables of an analysis, without the flows `legs`."""
    from wiretale.analyzer.query import dicts

    connection.execute(f"CREATE TEMP TABLE each_flow AS {BY_FLOW.format(keys='flow', schema='', more='')}")
    connection.execute("DELETE FROM each_flow WHERE flow IN (SELECT unnest($legs))", {"legs": list(legs)})
    (sums,) = dicts(connection, TOTAL)
    parts = [flow_part(row) for row in dicts(connection, f"FROM each_flow ORDER BY bytes DESC, flow LIMIT {FLOWS_MAX}")]
    findings = [RunFinding(**row) for row in dicts(connection, f"SELECT {', '.join(RunFinding._fields)} FROM findings")]
    (times,) = dicts(connection, FLOW_TIMES)
    total = values_of(sums)
    total["flows"] = float(sums["flows"])
    total["findings"] = float(sum(finding.severity in ("warning", "error") for finding in findings))
    if not sums["flows"]:  # no traffic is 0, not unknown
        total.update(goodput=0.0, throughput=0.0, packets=0.0, bytes=0.0)
    damaged = dicts(connection, "SELECT count(damage) AS n FROM interfaces")[0]["n"] > 0
    return Run(path, kind, total, parts, findings, damaged, {part: number(times[f"time_{part}"]) for part in PARTS})


def load_trace(trace: Trace, keep: bool = False, legs: bool = True) -> Run:
    """Returns the run of an analysis, which `keep` retains; without `legs`, each conversation counts once."""
    from wiretale.analyzer.query import connect

    with connect(trace) as connection:
        left_out = () if legs else trace.transfers.legs
        run = run_of_tables(connection, ", ".join(trace.inputs), "capture", left_out)
    run.trace = trace if keep else None
    run.answer = trace.answer.sentence
    return run


def load_capture(path: str, keep: bool = False, options: AnalysisOptions = NO_OPTIONS) -> Run:
    """Returns the run of a capture or a folder of captures; `keep` retains its analysis."""
    from wiretale.analyzer.trace import analyze_whole

    run = load_trace(analyze_whole(path, options=options), keep)
    run.path = path
    return run


@contextmanager
def connect_tables(path: str, names: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens tables of `wiretale analyze -o`, with times as int64 ns. Raises InputError if one is missing or incomplete."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS

    with utf8_name(Path(path)) as folder, duckdb.connect(config=dict(SETTINGS)) as connection:
        try:
            for name in names:
                file = str(folder / f"{name}.parquet").replace("'", "''")
                times = ", ".join(f"epoch_ns({time}) AS {time}" for time in TIMES.get(name, ()))
                columns = f"* REPLACE ({times})" if times else "*"
                connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM read_parquet('{file}')")
            yield connection
        except duckdb.Error as error:
            raise InputError(
                f"{path}: expected the complete tables of `wiretale analyze -o`: {str(error).splitlines()[0]}"
            ) from None


def load_tables(path: str) -> Run:
    """Returns the run of a folder, which must hold the tables of `wiretale analyze -o`. Raises InputError otherwise."""
    with connect_tables(path, TABLES) as connection:
        return run_of_tables(connection, path, "tables")


def mbit(end: dict[str, Any]) -> float | None:
    """Returns the rate in bit/s."""
    rate = end.get("rate_mbit_s")
    return rate * 1e6 if isinstance(rate, (int, float)) else None


def test_values(report: dict[str, Any], way: str = "") -> Values:
    """Returns the measures of one test in one direction."""
    sender, receiver = part(report, f"{way}sender"), part(report, f"{way}receiver")
    numbers = {
        name: value
        for source in (sender, receiver)
        for name, value in source.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    sent, got, lost = (numbers.get(f"blocks_{name}") for name in ("sent", "received", "lost"))
    seconds = receiver.get("elapsed_s") or sender.get("elapsed_s")
    return {
        "goodput": mbit(receiver),
        "throughput": mbit(sender),
        "block_loss": ratio(lost, sent, 100.0),
        "blocks_lost": lost,
        "out_of_order": numbers.get("blocks_out_of_order"),
        "jitter": numbers.get("jitter_ns"),
        "host_dropped": numbers.get("host_dropped"),
        "duration": seconds * 1e9 if isinstance(seconds, (int, float)) else None,
        "packets": got,
        "bytes": numbers.get("bytes_received"),
    }


def test_part(report: dict[str, Any], label: str | None, way: str = "") -> Part:
    """Returns a test by its name, else by its parameters."""
    test = part(report, "test")
    sizes = test.get("sizes")
    parameters = (
        str(test.get("protocol") or "test"),
        "way back" if way else str(test.get("direction") or "forward"),
        ",".join(map(str, sizes)) if isinstance(sizes, list) else "",
    )
    name = label or " ".join(
        filter(None, (*parameters[:2], parameters[2] and f"{parameters[2]} B", f"to port {test.get('port')}"))
    )
    values = test_values(report, way)
    return Part(
        f"{name} ← back" if way and label else name,
        ((name, way), (*parameters, test.get("port")), parameters[:2]),
        values["bytes"] or 0,
        values,
    )


def run_of_tests(path: str, kind: str, tests: Iterable[tuple[dict[str, Any], str | None]]) -> Run:
    """Returns the run of reports of the generator. Total rates are weighted by time."""
    parts = []
    for report, label in tests:
        parts.append(test_part(report, label))
        if part(report, "reverse_sender") or part(report, "reverse_receiver"):
            parts.append(test_part(report, label, "reverse_"))
    summed = ("blocks_lost", "out_of_order", "host_dropped", "duration", "packets", "bytes")
    total = {name: sum_of(parts, name) for name in summed}
    for name in ("goodput", "throughput", "jitter", "block_loss"):
        total[name] = mean_of(parts, name, "duration" if name in ("goodput", "throughput") else "packets")
    return Run(path, kind, {**total, "flows": float(len(parts))}, parts)


def sum_of(parts: Sequence[Part], name: str) -> float | None:
    """Returns the sum over parts with that measure."""
    values = [value for part in parts if (value := part.values.get(name)) is not None]
    return sum(values) if values else None


def mean_of(parts: Sequence[Part], name: str, weight: str) -> float | None:
    """Returns the weighted mean over parts with both measures."""
    pairs = ((part.values.get(name), part.values.get(weight)) for part in parts)
    weighted = [(v, w) for v, w in pairs if v is not None and w is not None]
    weights = sum(w for _, w in weighted)
    if not weighted:
        return None
    return sum(v * w for v, w in weighted) / weights if weights else sum(v for v, _ in weighted) / len(weighted)


def load_experiment(path: str) -> Run:
    """Returns the run of `wiretale experiment run`, of which one test must be complete: the report of each session."""
    tests: list[tuple[dict[str, Any], str | None]] = []
    for file in sorted(Path(path, "raw").glob("*.json")):
        try:
            data = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: {error}") from None
        name = str(part(data, "test").get("name") or file.stem) if isinstance(data, dict) else file.stem
        sessions = data.get("sessions") if isinstance(data, dict) else None
        for n, session in enumerate(sessions if isinstance(sessions, list) else []):
            report = part(session, "report") if isinstance(session, dict) else {}
            if report:
                tests.append((report, name if len(sessions or []) == 1 else f"{name} session {n + 1}"))
    if not tests:
        raise InputError(f"{path}: expected an experiment with at least one completed test")
    return run_of_tests(path, "experiment", tests)


def load_reports(path: str) -> Run:
    """Returns the run of reports of wiretale send or receive --json."""
    return run_of_tests(path, "reports", [(report, None) for report in read_reports(path)])


def begins_as_json(path: str) -> bool:
    """Returns whether a file begins with a JSON object."""
    try:
        with open(path, "rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def load_run(path: str, keep: bool = False, options: AnalysisOptions = NO_OPTIONS) -> Run:
    """Returns the run of a path; `keep` retains the analysis of a capture, made with `options`. InputError if it has none."""
    if os.path.isdir(path):
        if Path(path, "flows.parquet").is_file():
            return load_tables(path)
        if Path(path, "experiment.json").is_file():
            return load_experiment(path)
        return load_capture(path, keep, options)
    if path != "-" and os.path.isfile(path) and begins_as_json(path):
        return load_reports(path)
    return load_capture(path, keep, options)
