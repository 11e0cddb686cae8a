# SPDX-License-Identifier: Apache-2.0
"""Builds results.csv from raw reports: one line per session and test. docs/experiments.md defines the columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from wiretale.reports.export.csv_text import csv_cell
from wiretale.reports.export.destination import output_file
from wiretale.traffic.experiment.store import RESULTS, Store

Row = dict[str, Any]
# The studies' columns in their order, then further ones.
COLUMNS = (
    "protocol",
    "header_bytes",
    "block_bytes",
    "blocks_sent",
    "bytes_sent",
    "bytes_received",
    "elapsed_s",
    "throughput_kb_s",
    "throughput_mbit_s",
    "bytes_lost",
    "packets_lost",
    "percent_received",
    "sending_rate_mbit_s",
    "receiving_rate_mbit_s",
    "trial",
    "test",
    "group",
    "session",
    "blocks_received",
    "out_of_order",
    "duplicate",
    "corrupt",
    "host_dropped",
    "start_ns",
    "end_ns",
    "delay_ns",
    "jitter_ns",
    "offered_mbit_s",
    "start_offset_s",
    "planned_s",
    "streams",
    "complete",
    "throughput_exceeds_link",
    "sending_exceeds_link",
    "capture",
    "error",
)


def part(report: Row, name: str) -> Row:
    """Returns a value of one endpoint's report, None if missing."""
    found = report.get(name)
    return found if isinstance(found, dict) else {}


def difference(more: int | None, less: int | None) -> int | None:
    """Returns the difference of two counts, None if one is missing."""
    return None if more is None or less is None else more - less


def elapsed(sender: Row, receiver: Row) -> float | None:
    """Returns the time from first to last block, of the endpoint with the longer one: each uses its own clock."""
    known = [end["elapsed_s"] for end in (sender, receiver) if end.get("elapsed_s")]
    return max(known, default=None)


def throughput(received: int | None, took: float | None, receiver: Row) -> float | None:
    """Returns bytes per second. The receiver's own time excludes the first datagram, so its rate must exclude it too;
    with a single datagram the rate is None."""
    if not took or received is None or receiver.get("rate_kb_s", 0) is None:
        return None
    if took == receiver.get("elapsed_s") and "rate_kb_s" in receiver:
        return float(receiver["rate_kb_s"]) * 1e3
    return received / took


def measures(session: Row, report: Row) -> Row:
    """Returns the columns from a session's report."""
    sender, receiver = part(report, "sender"), part(report, "receiver")
    sent, received = report.get("bytes_sent"), report.get("bytes_received")
    took = elapsed(sender, receiver)
    rate = throughput(received, took, receiver)
    return {
        "blocks_sent": report.get("blocks_sent"),
        "bytes_sent": sent,
        "bytes_received": received,
        "elapsed_s": took,
        "throughput_kb_s": rate and rate / 1e3,
        "throughput_mbit_s": rate and rate * 8 / 1e6,
        "throughput_exceeds_link": report.get("throughput_exceeds_link"),
        "sending_exceeds_link": report.get("sending_exceeds_link"),
        "bytes_lost": difference(sent, received),
        "packets_lost": report.get("blocks_lost"),
        "percent_received": 100 * received / sent if sent and received is not None else None,
        "sending_rate_mbit_s": sender.get("rate_mbit_s"),
        "receiving_rate_mbit_s": receiver.get("rate_mbit_s"),
        "blocks_received": report.get("blocks_received"),
        "out_of_order": report.get("blocks_out_of_order"),
        "duplicate": report.get("blocks_duplicate"),
        "corrupt": report.get("blocks_corrupt"),
        "host_dropped": receiver.get("host_dropped"),
        "start_ns": sender.get("first_ns"),
        "end_ns": receiver.get("last_ns"),
        "delay_ns": difference(receiver.get("last_ns"), sender.get("first_ns")),
        "jitter_ns": receiver.get("jitter_ns"),
        "complete": report.get("complete"),
    }


def session_row(data: Row, number: int) -> Row:
    """Returns a line of the table."""
    done, planned = data["sessions"][number], data["test"]["sessions"][number]
    rate = planned["rate_bps"]
    return {
        **measures(planned, done["report"] or {}),
        "protocol": planned["protocol"],
        "header_bytes": planned["header_bytes"],
        "block_bytes": planned["block_bytes"],
        "trial": data["test"]["trial"],
        "test": data["test"]["name"],
        "group": data["test"]["group"],
        "session": planned["label"],
        "offered_mbit_s": rate and rate / 1e6,
        "start_offset_s": planned["start_s"],
        "planned_s": planned["seconds"],
        "streams": planned["streams"],
        "capture": " ".join((data["tracer"] or {}).get("files", [])) or None,
        "error": done["error"] or data["error"],
    }


def rows(tests: Iterable[Row]) -> Iterator[Row]:
    for data in tests:
        for number in range(len(data["sessions"])):
            yield session_row(data, number)


def cell(value: object) -> object:
    """Formats a value: empty if unknown, and no more digits than were measured."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else csv_cell(value)


def write_results(store: Store) -> None:
    """Writes results.csv from all results in the folder."""
    with output_file(store.folder / RESULTS) as out, io.TextIOWrapper(out, "utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows(store.tests()):
            writer.writerow([cell(row.get(name)) for name in COLUMNS])
