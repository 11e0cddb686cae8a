# SPDX-License-Identifier: Apache-2.0
"""`wiretale lab run` and `wiretale lab check`: results beside published figures, fidelity, precision of the link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

from rich.console import RenderableType
from rich.text import Text

from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import UNKNOWN, plural, show_duration, show_rate
from wiretale.reports.terminal.console import print_parts
from wiretale.reports.terminal.fitted import Column, fitted

# Heading, measured figure, published figure, decimals.
FIGURES = (
    ("sent", "packets_sent", "packets_sent", 0),
    ("received", "packets_received", "packets_received", 0),
    ("latency ms", "latency_ms", "latency_ms", 2),
    ("jitter ms", "jitter_ms", "jitter_ms", 3),
    ("queued", "queue_packets", "queue_length_packets", 0),
    ("kibit/s", "throughput_kibps", "throughput_kibps", 0),
    ("KiB", "kb_transferred", "kb_transferred", 0),
)
RANKS = {"kibit/s": 1, "queued": 2, "KiB": 3}  # columns that a narrow terminal leaves out
COLUMNS = (
    Column("measured / published"),
    *(Column(heading, True, RANKS.get(heading, 0)) for heading, *_ in FIGURES),
)


def decimal_text(value: float | None, decimals: int) -> str:
    """Returns a number, or a dash if it is unknown."""
    return UNKNOWN if value is None else f"{value:,.{decimals}f}"


def fidelity_text(fidelity: dict[str, Any]) -> str:
    """Returns how late the link was, and whether the run is valid, in one line."""
    error = ""
    if fidelity["error_ns_p99"] is not None:
        p99, most = (show_duration(fidelity[name]) for name in ("error_ns_p99", "error_ns_max"))
        error = f"emulation error p99 {p99}, max {most}, "
    verdict = {True: "valid", False: "not valid", None: "no packet left"}[fidelity["valid"]]
    p99, most = (show_duration(fidelity[name]) for name in ("bound_ns_p99", "bound_ns_max"))
    bounds = f"p99 {p99}, max {most}, no overrun"
    overruns = fidelity["overruns"] + fidelity["restamped"]
    return f"fidelity: {error}{plural(overruns, 'overrun')}: {verdict} (bounds: {bounds})"


def print_fidelity(results: dict[str, Any], out: IO[str]) -> None:
    """Prints the line of one run."""
    print_parts(out, lambda console: [Text(fidelity_text(results["fidelity"]))])


def figures_of(row: dict[str, Any]) -> list[str]:
    """Returns the case and its figures: measured / published."""
    pairs = ((row[measured], row["published"].get(published), digits) for _, measured, published, digits in FIGURES)
    return [
        printable(row["case"]),
        *(f"{decimal_text(here, digits)} / {decimal_text(there, digits)}" for here, there, digits in pairs),
    ]


def row_parts(rows: Sequence[dict[str, Any]], width: int) -> Iterator[RenderableType]:
    """Yields the table, then the lines about each case."""
    yield fitted(COLUMNS, map(figures_of, rows), width)
    for row in rows:
        far = [name for name, near in row["as_published"].items() if not near]
        lines = [f"not as published: {', '.join(far)}"] if far else []
        yield Text(
            "\n".join([printable(row["case"]), *(f"  {line}" for line in (*lines, fidelity_text(row["fidelity"])))])
        )


def print_rows(results: dict[str, Any], out: IO[str]) -> None:
    """Prints a line for each row: measured / published."""
    print_parts(out, lambda console: row_parts(results.get("rows", [results]), console.width))


def print_check(result: dict[str, Any], out: IO[str]) -> None:
    """Prints a line for each trial of the link, then the verdict."""
    for trial in result["trials"]:
        median, p99 = (show_duration(1000 * trial[name]) for name in ("error_us_median", "error_us_p99"))
        print(
            f"{show_rate(trial['asked_bps']):>11}: carried {show_rate(trial['carried_bps'])}, "
            f"{plural(trial['packets'], 'packet')}, {trial['overruns']:,} lost by the link itself\n"
            f"{'':13}added delay error {median} (median), {p99} (p99)",
            file=out,
        )
    print(result["verdict"], file=out)
