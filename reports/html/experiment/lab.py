# SPDX-License-Identifier: Apache-2.0
"""The report of lab scenarios: a table of measured and published figures, and panels over one time axis per scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretale.reports.html import offline_page
from wiretale.reports.html.figures import MUTED, NETWORK, RECEIVER, SENDER, axis_key, panel_axes, plot, scatter
from wiretale.reports.terminal.lab import FIGURES, decimal_text, fidelity_text

Bins = dict[str, list[Any]]  # columns over time, as traffic/lab/flow.py measures them


@dataclass(frozen=True)
class Line:
    """A column of the bins, drawn as a line of a panel."""

    column: str
    name: str
    panel: int
    color: str
    dash: str = "solid"
    hover: str = "%{y:.3s}"


PANELS = ("throughput, bit/s", "latency, ms", "jitter, ms", "queue, packets", "bytes", "total losses")
LINES = (
    Line("throughput_bps", "throughput", 0, SENDER, hover="%{y:.4s}bit/s"),
    Line("cumulative_throughput_bps", "cumulative throughput", 0, MUTED, "dash", "%{y:.4s}bit/s so far"),
    Line("latency_ms", "latency", 1, SENDER, hover="%{y:.3f} ms"),
    Line("jitter_ms", "jitter", 2, SENDER, hover="%{y:.3f} ms"),
    Line("jitter_ms_max", "maximum jitter", 2, MUTED, "dash", "%{y:.3f} ms at most"),
    Line("waiting", "queue length", 3, SENDER, hover="%{y} packets"),
    Line("bytes", "bytes received", 4, RECEIVER, hover="%{y:,} bytes"),
    Line("lost_so_far", "lost packets", 5, NETWORK, hover="%{y} packets"),
)
# Panel, published figure, factor.
PUBLISHED = (
    (0, "throughput_kibps", 1024),
    (1, "latency_ms", 1),
    (2, "jitter_ms", 1),
    (3, "queue_length_packets", 1),
    (4, "kb_transferred", 1024),
)
GAP = 0.04
COUNTED = (3, 5)  # panels of packets
FEW = 6  # packets; Plotly chooses whole ticks above this


def line_trace(name: str, x: list[Any], y: list[Any], panel: int, hover: str, **line: Any) -> dict[str, Any]:
    """Returns a line of a panel."""
    return scatter(name, x, y, hover, mode="lines", line={"width": 1.5, **line}, yaxis=axis_key(panel + 1))


def lab_figure(bins: Bins, published: dict[str, Any]) -> dict[str, Any]:
    """Returns the panels of a flow, with published figures as horizontal lines; only the first is in the legend."""
    seconds = bins["seconds"]
    traces = [
        {
            **line_trace(
                series.name,
                seconds,
                bins[series.column],
                series.panel,
                series.hover,
                color=series.color,
                dash=series.dash,
            ),
            "showlegend": series.dash != "solid",  # the heads name the others
        }
        for series in LINES
    ]
    span = [0, seconds[-1] if seconds else 0]
    levels = [(panel, published[name] * factor) for panel, name, factor in PUBLISHED if published.get(name) is not None]
    for number, (panel, level) in enumerate(levels):
        name, look = "published" + " " * bool(number), {"color": MUTED, "dash": "dot"}
        line = line_trace(name, span, [level, level], panel, "published %{y:.4s}", **look)
        traces.append({**line, "showlegend": number == 0})
    height = 1 / len(PANELS)
    axes: dict[int, dict[str, Any]] = {}
    for panel, heading in enumerate(PANELS):
        top = 1 - panel * height
        axes[panel + 1] = {"title": {"text": heading}, "domain": [top - height + GAP, top], "rangemode": "tozero"}
        values = (value for line in LINES if line.panel == panel for value in bins[line.column] if value is not None)
        if panel in COUNTED and max(values, default=0) <= FEW:
            axes[panel + 1]["dtick"] = 1  # packets are whole
    title = {"text": "seconds since the first packet"}
    return plot(
        traces,
        height=980,
        margin={"l": 76, "r": 16, "t": 44, "b": 44},
        hovermode="x",
        hoversubplots="axis",
        xaxis={"title": title, "zeroline": False, "anchor": "free", "position": 0},
        **panel_axes(axes),
    )


def far_names(row: dict[str, Any]) -> list[str]:
    """Returns the headings of the figures that are not as published."""
    headings = {published: heading for heading, _, published, _ in FIGURES}
    return [headings.get(name, name).split(" ")[0] for name, near in row["as_published"].items() if not near]


def answer(rows: Sequence[dict[str, Any]]) -> str:
    """Returns how many cases are as published, or the figures of one that is not; without published ones, what arrived."""
    judged = [row for row in rows if row["as_published"]]
    if not judged:
        sent, received = (sum(row[name] or 0 for row in rows) for name in ("packets_sent", "packets_received"))
        return f"{received:,} of {sent:,} packets arrived." if sent else "No packet was sent."
    far = [row for row in judged if far_names(row)]
    if len(judged) > 1:
        return f"{len(judged) - len(far):,} of {len(judged):,} cases are as published."
    names = far_names(judged[0])
    if not far:
        return f"{judged[0]['case']} is as published."
    return f"{judged[0]['case']}: {', '.join(names)} {'is' if len(names) == 1 else 'are'} not as published."


def page_row(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row of the table."""
    published = row["published"]
    return {
        "case": row["case"],
        "description": f"{row['profile']}: {row['protocol'].upper()}, IP packets of {row['packet_bytes']} bytes. "
        f"{fidelity_text(row['fidelity']).capitalize()}.",
        "cells": [
            (decimal_text(row[measured], decimals), decimal_text(published.get(figure), decimals))
            for _, measured, figure, decimals in FIGURES
        ],
        "differs": ", ".join(far_names(row)),
        "problems": row.get("disturbances", []),
    }


def render(title: str, rows: Sequence[dict[str, Any]], bins: Sequence[Bins]) -> str:
    """Returns the page; `bins` are those of each row."""
    figures = [lab_figure(measured, row["published"]) for row, measured in zip(rows, bins, strict=True)]
    return offline_page.render(
        "lab.html",
        {"figures": {f"plot-{number}": figure for number, figure in enumerate(figures)}},
        title=title,
        heading=answer(rows),
        headings=[heading for heading, *_ in FIGURES],
        rows=[page_row(row) for row in rows],
    )


def write_lab_report(title: str, rows: Sequence[dict[str, Any]], bins: Sequence[Bins], path: Path) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(title, rows, bins), path)
