# SPDX-License-Identifier: Apache-2.0
"""The report of an experiment: one HTML file that works offline."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import UNKNOWN, plural, show_bytes, show_count, show_duration
from wiretale.reports.html import offline_page
from wiretale.reports.html.experiment_figures import experiment_figures
from wiretale.reports.html.experiment_outcome import Outcome

Row = dict[str, Any]
ROWS_MOST = 2000
# Heading and cell of the table of results.
CELLS = (
    ("test", lambda row: row["test"]),
    ("session", lambda row: row["session"]),
    ("sent", lambda row: show_bytes(row["bytes_sent"])),
    ("received", lambda row: show_bytes(row["bytes_received"])),
    ("% received", lambda row: number(row["percent_received"])),
    ("elapsed", lambda row: show_duration(row["elapsed_s"] and row["elapsed_s"] * 1e9)),
    ("Mbit/s", lambda row: marked(row, "throughput_mbit_s", "throughput_exceeds_link")),
    ("sending", lambda row: marked(row, "sending_rate_mbit_s", "sending_exceeds_link")),
    ("receiving", lambda row: marked(row, "receiving_rate_mbit_s", "throughput_exceeds_link")),
    ("blocks lost", lambda row: show_count(row["packets_lost"])),
    ("out of order", lambda row: show_count(row["out_of_order"])),
    ("dropped by the host", lambda row: show_count(row["host_dropped"])),
)
TEXT_CELLS = ("test", "session")


def number(value: float | None) -> str:
    """Four digits."""
    return UNKNOWN if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def marked(row: Row, name: str, exceeds: str) -> str:
    """A rate; one above that of the link is no rate of the wire."""
    return f"{number(row[name])} (above the link's)" if row.get(exceeds) else number(row[name])


def where(endpoint: Row) -> str:
    """An endpoint in words."""
    if endpoint["ssh"]:
        return f"{endpoint['ssh']} (ssh)"
    return f"namespace {endpoint['netns']}" if endpoint["netns"] else "the host of the run"


def facts(outcome: Outcome) -> list[tuple[str, str]]:
    """What was run."""
    plan = outcome.plan
    tests = plural(len(plan["tests"]) - outcome.missing, "test")
    found = [
        ("plan", f"{plan['name']}: {plan['title']}"),
        ("run", f"{tests}, from {show_time(outcome.started_ns).partition('.')[0]}Z"),
        ("from", where(plan["sender"])),
        ("to", f"{where(plan['receiver'])}, {plan['address']} port {plan['port']}"),
        ("captured by", outcome.tracer or "nobody"),
    ]
    if outcome.missing:
        found.append(("still to run", plural(outcome.missing, "test")))
    return found


def mean_of(rows: list[Row], group: str, name: str) -> dict[int, float]:
    """Means over the trials, by the number of blocks: the same in all groups of the sweep."""
    found: dict[int, list[float]] = {}
    for row in rows:
        if row["group"] == group and row[name] is not None:
            found.setdefault(row["block_bytes"] - row["header_bytes"], []).append(row[name])
    return {size: fmean(values) for size, values in found.items()}


def ratio(rows: list[Row], over: str, under: str) -> str:
    """Of throughputs, over the block sizes."""
    more, less = (mean_of(rows, group, "throughput_mbit_s") for group in (over, under))
    ratios = [more[size] / less[size] for size in more if less.get(size)]
    return f"{fmean(ratios):.3g} ({min(ratios):.3g} to {max(ratios):.3g} by block size)" if ratios else UNKNOWN


def share(rows: list[Row], group: str) -> str:
    """Percent received, over the block sizes."""
    shares = list(mean_of(rows, group, "percent_received").values())
    return f"{fmean(shares):.1f} ({min(shares):.1f} to {max(shares):.1f} by block size)" if shares else UNKNOWN


def findings(outcome: Outcome) -> list[Row]:
    """What S2 found, and the same of this run."""
    measured = {
        "TCP throughput over UDP throughput": ratio(outcome.rows, "tcp", "udp"),
        "UDP throughput over TCP throughput": ratio(outcome.rows, "udp", "tcp"),
        "UDP": share(outcome.rows, "udp"),
        "TCP percent received": share(outcome.rows, "tcp"),
    }
    listed = []
    for one in outcome.published.get("findings", []):
        key = one["finding"] if one["finding"] in measured else one["finding"].split()[0]
        listed.append({**one, "measured": measured.get(key, UNKNOWN)})
    return listed


def table(outcome: Outcome) -> Row:
    """The results, in text."""
    heads = [head for head, _ in CELLS]
    listed = [[show(row) for _, show in CELLS] for row in outcome.rows[:ROWS_MOST]]
    return {"heads": heads, "rows": listed, "numeric": [head not in TEXT_CELLS for head in heads]}


def render(outcome: Outcome) -> str:
    """The page."""
    figures = experiment_figures(outcome)
    return offline_page.render(
        "experiment.html",
        {"figures": {f"figure-{number}": figure for number, figure in enumerate(figures, 1)}},
        style=offline_page.part("experiment.css"),
        title=outcome.plan["title"],
        facts=facts(outcome),
        failures=outcome.failures,
        findings=findings(outcome),
        study=outcome.plan["study"],
        figures=figures,
        table=table(outcome),
        left=max(0, len(outcome.rows) - ROWS_MOST),
    )


def write_page(outcome: Outcome, path: Path) -> Path:
    """Writes the page and returns its path. OutputError, with what was there before unharmed, when it cannot."""
    return offline_page.write(render(outcome), path)
