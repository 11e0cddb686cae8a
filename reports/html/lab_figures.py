# SPDX-License-Identifier: Apache-2.0
"""The figure of a flow over a lab's link: panels over one time axis, as Plotly's JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from wiretale.reports.html.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED


@dataclass(frozen=True)
class Line:
    """A column of the bins as a line of a panel."""

    column: str
    name: str
    panel: int
    color: str
    dash: str = "solid"
    hover: str = "%{y:.3s}"


PANELS = ("throughput, bit/s", "latency, ms", "jitter, ms", "queue, packets", "bytes", "lost so far")
LINES = (
    Line("throughput_bps", "throughput", 0, BLUE, hover="%{y:.4s}bit/s"),
    Line("cumulative_throughput_bps", "cumulative throughput", 0, BLUE, "dash", "%{y:.4s}bit/s so far"),
    Line("latency_ms", "latency", 1, GREEN, hover="%{y:.3f} ms"),
    Line("jitter_ms", "jitter", 2, ORANGE, hover="%{y:.3f} ms"),
    Line("jitter_ms_max", "greatest jitter", 2, ORANGE, "dash", "%{y:.3f} ms at most"),
    Line("waiting", "queue length", 3, PURPLE, hover="%{y} packets"),
    Line("bytes", "bytes received", 4, BLUE, hover="%{y:,} bytes"),
    Line("lost_so_far", "lost packets", 5, RED, hover="%{y} packets"),
)
# Panel, published figure, what it is multiplied by.
PUBLISHED = (
    (0, "throughput_kibps", 1024),
    (1, "latency_ms", 1),
    (2, "jitter_ms", 1),
    (3, "queue_length_packets", 1),
    (4, "kb_transferred", 1024),
)
GAP = 0.03
COUNTED = (3, 5)  # panels of packets
FEW = 6


def axis_name(panel: int) -> str:
    """As Plotly numbers them."""
    return "y" if panel == 0 else f"y{panel + 1}"


def most_of(bins: dict[str, list[Any]], panel: int) -> float:
    """The greatest value that a panel shows."""
    columns = (bins[line.column] for line in LINES if line.panel == panel)
    return max((value for column in columns for value in column if value is not None), default=0)


def published_lines(published: dict[str, Any], last: float) -> list[Any]:
    """Published figures as level lines."""
    from plotly import graph_objects as go

    return [
        go.Scatter(
            name="published" if shown == 0 else "published ",
            showlegend=shown == 0,
            x=[0, last],
            y=[published[figure] * factor] * 2,
            mode="lines",
            line={"color": GREY, "dash": "dot", "width": 1.5},
            hovertemplate="published %{y:.4s}<extra></extra>",
            yaxis=axis_name(panel),
        )
        for shown, (panel, figure, factor) in enumerate(
            entry for entry in PUBLISHED if published.get(entry[1]) is not None
        )
    ]


def lab_figure(bins: dict[str, list[Any]], published: dict[str, Any]) -> dict[str, Any]:
    """All panels of a flow; `bins` are the columns that lab_flow.py measures."""
    from plotly import graph_objects as go

    lines = [
        go.Scatter(
            name=line.name,
            x=bins["seconds"],
            y=bins[line.column],
            mode="lines",
            line={"color": line.color, "dash": line.dash, "width": 1.5},
            hovertemplate=line.hover + "<extra></extra>",
            yaxis=axis_name(line.panel),
        )
        for line in LINES
    ]
    figure = go.Figure(lines + published_lines(published, bins["seconds"][-1] if bins["seconds"] else 0))
    height = 1 / len(PANELS)
    for panel, title in enumerate(PANELS):
        top = 1 - panel * height
        axis: dict[str, Any] = {"title": {"text": title}, "domain": [top - height + GAP, top]}
        axis |= {"zeroline": False, "rangemode": "tozero"}
        if panel in COUNTED and most_of(bins, panel) <= FEW:
            axis["dtick"] = 1  # no half packets
        figure.update_layout({f"yaxis{panel + 1 if panel else ''}": {**axis, "exponentformat": "SI"}})
    figure.update_layout(
        template="none",
        height=980,
        margin={"l": 76, "r": 16, "t": 36, "b": 44},
        hovermode="x",
        hoversubplots="axis",
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        font={"family": "system-ui, sans-serif", "size": 12},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    figure.update_xaxes(title="seconds since the first packet", zeroline=False, anchor="free", position=0)
    whole: dict[str, Any] = json.loads(figure.to_json())
    return whole
