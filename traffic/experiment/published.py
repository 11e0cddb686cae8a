# SPDX-License-Identifier: Apache-2.0
"""Published figures of the studies as lines for the report. Rates are in Mbit/s; 1 MB is 10^6 bytes."""

from __future__ import annotations

import csv
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.units import one_of

Row = dict[str, str]
Line = dict[str, Any]  # name, x, y


def published_rows(name: str) -> list[Row]:
    """Returns a table as published."""
    text = files("wiretale.traffic.experiment").joinpath("published", f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def block_rate(row: Row) -> float:
    """Returns the rate of a row of S4 in Mbit/s."""
    return float(row["block_bytes"]) * float(row["blocks_sent"]) * 8 / float(row["total_ms"]) / 1e3


def block_share(row: Row) -> float:
    """Returns the percentage of blocks received in a row of S4."""
    return 100 - 100 * float(row["missing_blocks"]) / float(row["blocks_sent"])


# Study, figure, table, columns that name a line, x, and y with its factor.
FIGURES: tuple[tuple[Any, ...], ...] = (
    ("S3", "throughput", "file_transfer", ("network", "protocol"), "block_bytes", "rate_mb_per_s", 8),
    ("S3", "received", "file_transfer", ("network", "protocol"), "block_bytes", "percent_received", 1),
    ("S4", "throughput", "block_benchmark", ("system", "protocol"), "block_bytes", block_rate, 1),
    ("S4", "received", "block_benchmark", ("system", "protocol"), "block_bytes", block_share, 1),
    ("S5", "offered", "rate_sweep", ("medium",), "offered_mbps", "throughput_mbps", 1),
)


def line(name: str, rows: list[Row], x: str, y: str | Callable[[Row], float], factor: float = 1) -> Line:
    """Returns two columns as a line, without rows where one is unknown."""
    complete = [row for row in rows if row[x] and (callable(y) or row[y])]
    values = [y(row) if callable(y) else float(row[y]) * factor for row in complete]
    return {"name": name, "x": [float(row[x]) for row in complete], "y": values}


def lines(study: str, table: str, keys: tuple[str, ...], *columns: Any) -> list[Line]:
    """Returns a line for each group of rows with the same keys."""
    by_name: dict[str, list[Row]] = {}
    for row in published_rows(table):
        by_name.setdefault(f"{study} " + ", ".join(row[key] for key in keys), []).append(row)
    return [line(name, rows, *columns) for name, rows in by_name.items()]


def parallel_tcp() -> list[Line]:
    """S5: throughput of each session; x is the experiment and the number of the session in it."""
    by_group: dict[str, dict[int, list[float]]] = {}
    for row in published_rows("parallel_tcp"):
        number = int(row["port"]) - 5000
        by_group.setdefault(row["experiment"], {}).setdefault(number, []).append(float(row["throughput_mbps"]))
    return [
        {"name": "S5", "group": group, "session": number, "trials": trials}
        for group, sessions in by_group.items()
        for number, trials in sessions.items()
    ]


def tcp_udp_mix() -> list[Line]:
    """S5: rate of a single session by the number of sessions of the other protocol."""
    made = []
    for measured, other in (("tcp", "udp"), ("udp", "tcp")):
        rows = [row for row in published_rows("tcp_udp_mix") if row["measured"] == measured]
        made.append({**line("S5", rows, f"{other}_sessions", "bandwidth_mbps"), "measured": measured})
    return made


def published(study: str | None) -> dict[str, list[Line]]:
    """Returns the published lines of a study by figure."""
    figures = {
        figure: lines(study_of_figure, *columns)
        for study_of_figure, figure, *columns in FIGURES
        if study_of_figure == study
    }
    if study == "S2":  # findings, each a sentence and a number
        figures["findings"] = [dict(row) for row in published_rows("controller_findings")]
    if study == "S5":
        figures |= {"sessions": parallel_tcp(), "mix": tcp_udp_mix()}
    return figures


def networks() -> list[str]:
    """Returns the networks and systems of which throughput by block size was published, each with its study."""
    return list(
        dict.fromkeys(
            line["name"].rpartition(", ")[0] for study in ("S3", "S4") for line in published(study)["throughput"]
        )
    )


def of_network(network: str) -> dict[str, list[Line]]:
    """Returns the published lines of one of the networks by figure. UsageError if there is none of this name."""
    if network not in networks():
        raise UsageError(f"published figures of {network!r}: expected {one_of(networks())}")
    every_line = published(network.partition(" ")[0])
    return {
        name: [entry for entry in lines if entry["name"].rpartition(", ")[0] == network]
        for name, lines in every_line.items()
    }
