# SPDX-License-Identifier: Apache-2.0
"""Published figures of the studies as lines for the report. Rates are in Mbit/s; 1 MB is 10^6 bytes."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

Row = dict[str, str]
Line = dict[str, Any]  # name, x, y


def published_rows(name: str) -> list[Row]:
    """Returns a table as published."""
    text = files("wiretale.traffic.experiment").joinpath("published", f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def lines(rows: list[Row], name: str, keys: tuple[str, ...]) -> Iterator[tuple[str, list[Row]]]:
    """Yields groups of rows with the same keys, and their names."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(f"{name} " + ", ".join(row[key] for key in keys), []).append(row)
    yield from found.items()


def line(name: str, rows: list[Row], x: str, y: str, factor: float = 1.0) -> Line:
    """Returns two columns as a line, without rows where one is unknown."""
    known = [row for row in rows if row[x] and row[y]]
    return {"name": name, "x": [float(row[x]) for row in known], "y": [float(row[y]) * factor for row in known]}


def file_transfer() -> dict[str, list[Line]]:
    """S3: rate and share received of two block sizes over three networks."""
    groups = list(lines(published_rows("file_transfer"), "S3", ("network", "protocol")))
    return {
        "throughput": [line(name, rows, "block_bytes", "rate_mb_per_s", 8) for name, rows in groups],
        "received": [line(name, rows, "block_bytes", "percent_received") for name, rows in groups],
    }


def block_benchmark() -> dict[str, list[Line]]:
    """S4: throughput and share of blocks received of four block sizes on two systems."""
    throughput, received = [], []
    for name, rows in lines(published_rows("block_benchmark"), "S4", ("system", "protocol")):
        sizes = [float(row["block_bytes"]) for row in rows]
        bits = [float(row["block_bytes"]) * float(row["blocks_sent"]) * 8 for row in rows]
        rates = [bit / float(row["total_ms"]) / 1e3 for bit, row in zip(bits, rows, strict=True)]
        shares = [100 - 100 * float(row["missing_blocks"]) / float(row["blocks_sent"]) for row in rows]
        throughput.append({"name": name, "x": sizes, "y": rates})
        received.append({"name": name, "x": sizes, "y": shares})
    return {"throughput": throughput, "received": received}


def rate_sweep() -> dict[str, list[Line]]:
    """S5: received against offered rate on three media."""
    groups = lines(published_rows("rate_sweep"), "S5", ("medium",))
    return {"offered": [line(name, rows, "offered_mbps", "throughput_mbps") for name, rows in groups]}


def parallel_tcp() -> dict[str, list[Line]]:
    """S5: throughput of each session; x is the experiment and the number of the session in it."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in published_rows("parallel_tcp"):
        number = int(row["port"]) - 5000
        found.setdefault(row["experiment"], {}).setdefault(number, []).append(float(row["throughput_mbps"]))
    listed = [
        {"name": "S5", "group": group, "session": number, "trials": trials}
        for group, sessions in found.items()
        for number, trials in sessions.items()
    ]
    return {"sessions": listed}


def tcp_udp_mix() -> dict[str, list[Line]]:
    """S5: rate of a single session by the number of sessions of the other protocol."""
    rows = published_rows("tcp_udp_mix")
    tcp = [row for row in rows if row["measured"] == "tcp"]
    udp = [row for row in rows if row["measured"] == "udp"]
    return {
        "mix": [
            {**line("S5", tcp, "udp_sessions", "bandwidth_mbps"), "measured": "tcp"},
            {**line("S5", udp, "tcp_sessions", "bandwidth_mbps"), "measured": "udp"},
        ]
    }


def controller_findings() -> dict[str, list[Line]]:
    """S2: findings, each a sentence and a number."""
    return {"findings": [dict(row) for row in published_rows("controller_findings")]}


OF_STUDY = {
    "S2": (controller_findings,),
    "S3": (file_transfer,),
    "S4": (block_benchmark,),
    "S5": (rate_sweep, parallel_tcp, tcp_udp_mix),
}


def published(study: str | None) -> dict[str, list[Line]]:
    """Returns the published lines of a study by figure."""
    found: dict[str, list[Line]] = {}
    for read in OF_STUDY.get(study or "", ()):
        found.update(read())
    return found
