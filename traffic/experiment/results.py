# SPDX-License-Identifier: Apache-2.0
"""Tables of an experiment: a line per session, per measure of a case, and per ping (columns in docs/experiments.md); and the data
of its report."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError
from wiretale.analyzer.theory.capacity import TCP_HEADER, TIMESTAMPS, UDP_HEADER, Link, block_maximum, maximum
from wiretale.reports.export.csv_text import csv_cell
from wiretale.reports.export.destination import output_file
from wiretale.reports.html.experiment.data import Outcome
from wiretale.traffic.experiment.beside import latency_rows
from wiretale.traffic.experiment.published import published
from wiretale.traffic.experiment.sending import settings
from wiretale.traffic.experiment.session_series import courses, other_flows, session_series, tcp_losses
from wiretale.traffic.experiment.store import LATENCIES, RESULTS, SUMMARIES, Store
from wiretale.traffic.experiment.summary import SUMMARY, summary

Row = dict[str, Any]
# The order of the studies, then further columns.
NAMES = """
protocol transport_header_bytes header_bytes block_bytes blocks_sent bytes_sent bytes_received elapsed_s throughput_kb_s
throughput_mbit_s bytes_lost packets_lost percent_received sending_rate_mbit_s receiving_rate_mbit_s trial test group session
blocks_received out_of_order duplicate corrupt host_dropped start_ns end_ns delay_ns jitter_ns offered_mbit_s
start_offset_s planned_s streams complete throughput_exceeds_link sending_exceeds_link settings late_p99_ns constant_rate
rtt_s elapsed_with_rtt_s throughput_with_rtt_mbit_s wire_mbit_s capture error
"""
COLUMNS = tuple(NAMES.split())
LATENCY = ("test", "group", "trial", "number", "time_ns", "rtt_ms", "loaded")
ETHERNET = Link(bps=10**9, tcp_options=TIMESTAMPS)
TRANSPORT_HEADER = {"tcp": TCP_HEADER, "udp": UDP_HEADER}
# Columns with the name that they have in the plan of a session.
PLANNED = ("protocol", "header_bytes", "block_bytes", "streams")
# Column, end whose report has it ("" for the report itself), member.
REPORTED = (
    ("blocks_sent", "", "blocks_sent"),
    ("bytes_sent", "", "bytes_sent"),
    ("bytes_received", "", "bytes_received"),
    ("throughput_exceeds_link", "", "throughput_exceeds_link"),
    ("sending_exceeds_link", "", "sending_exceeds_link"),
    ("packets_lost", "", "blocks_lost"),
    ("sending_rate_mbit_s", "sender", "rate_mbit_s"),
    ("receiving_rate_mbit_s", "receiver", "rate_mbit_s"),
    ("blocks_received", "", "blocks_received"),
    ("out_of_order", "", "blocks_out_of_order"),
    ("duplicate", "", "blocks_duplicate"),
    ("corrupt", "", "blocks_corrupt"),
    ("host_dropped", "receiver", "host_dropped"),
    ("late_p99_ns", "sender", "late_p99_ns"),
    ("constant_rate", "sender", "constant_rate"),
    ("start_ns", "sender", "first_ns"),
    ("end_ns", "receiver", "last_ns"),
    ("jitter_ns", "receiver", "jitter_ns"),
    ("complete", "", "complete"),
)


def part(report: Row, name: str) -> Row:
    """Returns the part of a report by one end; empty if it is missing."""
    member = report.get(name)
    return member if isinstance(member, dict) else {}


def difference(more: int | None, less: int | None) -> int | None:
    """Returns the difference of two counts, or None if one is unknown."""
    return None if more is None or less is None else more - less


def elapsed(sender: Row, receiver: Row) -> float | None:
    """Returns the time from first to last block at the end where it was longer, each by its own clock."""
    durations = [end["elapsed_s"] for end in (sender, receiver) if end.get("elapsed_s")]
    return max(durations, default=None)


def throughput(received: int | None, took: float | None, receiver: Row) -> float | None:
    """Returns bytes per second. If the receiver's time counts, it is the receiver's rate, which leaves out the first datagram
    and is unknown if there is only one."""
    if not took or received is None or receiver.get("rate_kb_s", 0) is None:
        return None
    if took == receiver.get("elapsed_s") and "rate_kb_s" in receiver:
        return float(receiver["rate_kb_s"]) * 1e3
    return received / took


def measures(report: Row) -> Row:
    """Returns the columns of a session that follow from its report."""
    parts = {"": report, "sender": part(report, "sender"), "receiver": part(report, "receiver")}
    values = {column: parts[end].get(name) for column, end, name in REPORTED}
    sent, received = values["bytes_sent"], values["bytes_received"]
    took = elapsed(parts["sender"], parts["receiver"])
    rate = throughput(received, took, parts["receiver"])
    with_rtt = with_round_trip(took, report.get("rtt_us"))
    return {
        **values,
        "elapsed_s": took,
        "throughput_kb_s": rate and rate / 1e3,
        "throughput_mbit_s": rate and rate * 8 / 1e6,
        "bytes_lost": difference(sent, received),
        "percent_received": 100 * received / sent if sent and received is not None else None,
        "delay_ns": difference(values["end_ns"], values["start_ns"]),
        "rtt_s": report["rtt_us"] / 1e6 if report.get("rtt_us") else None,
        "elapsed_with_rtt_s": with_rtt,
        "throughput_with_rtt_mbit_s": rate * 8 / 1e6 * took / with_rtt if rate and took and with_rtt else None,
    }


def with_round_trip(took: float | None, rtt_us: int | None) -> float | None:
    """Returns the time and a round trip, in which TCP makes its connection: S2 compares TCP with UDP and a round trip."""
    return took + rtt_us / 1e6 if took and rtt_us else None


def on_wire(rate: float | None, planned: Row) -> float | None:
    """Returns a rate of payload with headers, preambles and gaps of Ethernet with an MTU of 1,500 bytes, as S4 counts.

    TCP is taken to fill its segments; a datagram has frames of its own. None if the datagrams have several sizes.
    """
    if rate is None:
        return None
    if planned["protocol"] == "tcp":
        return rate / maximum(ETHERNET, "tcp").efficiency
    if planned.get("pattern") or planned.get("turns"):
        return None
    return rate / block_maximum(ETHERNET, "udp", planned["block_bytes"]).block_efficiency


def session_row(data: Row, number: int) -> Row:
    """Returns the line of a session."""
    done, planned = data["sessions"][number], data["test"]["sessions"][number]
    rate, measured = planned["rate_bps"], measures(done["report"] or {})
    return {
        **measured,
        **{name: planned[name] for name in PLANNED},
        "transport_header_bytes": TRANSPORT_HEADER[planned["protocol"]],
        "wire_mbit_s": on_wire(measured["throughput_mbit_s"], planned),
        "trial": data["test"]["trial"],
        "test": data["test"]["name"],
        "group": data["test"]["group"],
        "session": planned["label"],
        "offered_mbit_s": rate and rate / 1e6,
        "start_offset_s": planned["start_s"],
        "planned_s": planned["seconds"],
        "settings": settings(planned.get("sending", {})),
        "capture": " ".join((data["tracer"] or {}).get("files", [])) or None,
        "error": done["error"] or data["error"],
    }


def rows(tests: Iterable[Row]) -> Iterator[Row]:
    """Yields all lines."""
    for data in tests:
        for number in range(len(data["sessions"])):
            yield session_row(data, number)


def cell(value: object) -> object:
    """Returns a value as it is written: empty if unknown, with at most nine digits."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else csv_cell(value)


def write_table(path: Path, columns: Sequence[str], lines: Iterable[Row]) -> None:
    """Writes a table that appears whole or not at all."""
    with output_file(path) as out, io.TextIOWrapper(out, "utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in lines:
            writer.writerow([cell(row.get(name)) for name in columns])


def write_results(store: Store) -> None:
    """Writes results.csv, summary.csv, and latency.csv if there are pings, of all completed tests."""
    listed = list(rows(store.tests()))
    write_table(store.folder / RESULTS, COLUMNS, listed)
    write_table(store.folder / SUMMARIES, SUMMARY, summary(listed))
    if any(test["ping"] for test in store.plan()["tests"]):
        write_table(store.folder / LATENCIES, LATENCY, latencies(store.tests()))


def latencies(tests: Iterable[Row]) -> Iterator[Row]:
    """Yields the lines of latency.csv."""
    for data in tests:
        yield from latency_rows(data)


def programs(tests: Iterable[Row]) -> Iterator[Row]:
    """Yields the results of the programs beside the sessions, with their tests."""
    for data in tests:
        yield from ({"test": data["test"]["name"], **program} for program in data.get("programs", []))


def read_outcome(folder: Path) -> Outcome:
    """Returns plan and results of an experiment for its report. InputError if no test was completed."""
    store = Store(folder)
    tests = list(store.tests())
    if not tests:
        raise InputError(f"{folder}: expected at least one completed test; `wiretale experiment run` resumes the plan")
    outcome = outcome_without_captures(store, tests)
    together = [session_series(data, folder) for data in tests if len(data["sessions"]) > 1]
    port = outcome.plan["port"]
    return replace(
        outcome,
        other_flows=list(chain.from_iterable(other_flows(data, folder, port) for data in tests)),
        tcp_losses=list(tcp_losses(tests, folder, port)),
        together=[series for series in together if series],
        courses=list(courses(tests, folder)),
    )


def outcome_without_captures(store: Store, tests: Sequence[Row]) -> Outcome:
    """Returns plan and results of an experiment without what its captures tell; `tests` are one or more."""
    plan, tracers = store.plan(), [data["tracer"]["program"] for data in tests if data["tracer"]]
    return Outcome(
        folder=store.folder.name,
        plan=plan,
        rows=(listed := list(rows(tests))),
        summary=list(summary(listed)),
        latency=list(latencies(tests)),
        programs=list(programs(tests)),
        other_flows=[],
        tcp_losses=[],
        hosts=store.hosts(),
        together=[],
        courses=[],
        published=published(plan["study"]),
        failures=[(data["test"]["name"], data["error"]) for data in tests if data["error"]],
        started_ns=min(data["started_ns"] for data in tests),
        tracer=tracers[0] if tracers else None,
        missing=len(plan["tests"]) - len(tests),
    )
