# SPDX-License-Identifier: Apache-2.0
"""Plotly figures: the layout that all pages share, and the figure of a flow, with panels over one time axis.

The figure of a flow has no data: the page fills in the points that are in view.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BLUE, ORANGE, GREEN, RED, GREY, PURPLE = "#2f6fb0", "#d97a1f", "#3a8f5c", "#c93c37", "#8a94a0", "#7a5bb5"
LAYOUT: dict[str, Any] = {
    "template": "none",
    "hovermode": "closest",
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    "font": {"family": "system-ui, sans-serif", "size": 12},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
}


def plot(traces: list[dict[str, Any]], **layout: Any) -> dict[str, Any]:
    """Returns a figure as JSON. Plotly checks it: an unknown key is an error at this point, not an empty figure later."""
    from plotly import graph_objects as go

    return dict(json.loads(go.Figure(traces, {**LAYOUT, **layout}, skip_invalid=False).to_json()))


def scatter(name: str, x: Sequence[Any], y: Sequence[Any], hover: str, **more: Any) -> dict[str, Any]:
    """Returns a line or points."""
    return {"type": "scatter", "name": name, "x": x, "y": y, "hovertemplate": hover + "<extra></extra>", **more}


def axis_key(number: int) -> str:
    """Returns Plotly's name of the y axis with this number, from 1."""
    return "y" if number == 1 else f"y{number}"


def panel_axes(axes: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Returns the y axes of panels as keys of a layout."""
    common = {"zeroline": False, "exponentformat": "SI"}
    return {axis_key(number).replace("y", "yaxis"): {**common, **axis} for number, axis in axes.items()}


@dataclass(frozen=True)
class Trace:
    """A line or points of a panel; `key` names its data in the scripts of the page."""

    key: str
    name: str
    panel: str
    color: str
    mode: str = "lines"
    shape: str = "linear"
    dash: str = "solid"
    symbol: str = "circle"
    hover: str = "%{y}"
    size: int = 5
    shown: bool | str = True


PANELS = (
    ("rate", "throughput, bit/s"),
    ("sequence", "stream position, bytes"),
    ("rtt", "RTT, ms"),
    ("losses", "total losses"),
    ("blocks", "block delay, ms"),
    ("fragments", "fragments"),
)

# Verdicts as marks on the time-sequence graph, by events.kind (page/panels.js groups the rest).
MARKS = (
    ("fast_retransmission", "fast retransmission", RED, "diamond"),
    ("timeout_retransmission", "timeout retransmission", RED, "x"),
    ("probe_retransmission", "tail-loss probe", RED, "diamond-open"),
    ("retransmission", "retransmission, cause unknown", RED, "circle-open"),
    ("out_of_order", "out of order", PURPLE, "triangle-left"),
    ("ambiguous", "reordered or retransmitted (ambiguous)", PURPLE, "triangle-left-open"),
    ("copy", "duplicate (network or mirror)", GREY, "square-open"),
    ("duplicate_ack", "duplicate ACK", GREY, "line-ew-open"),
    ("acked_unseen_segment", "not captured", ORANGE, "star-open"),
    ("window_closed", "window closed or full", PURPLE, "line-ns-open"),
    ("block_lost", "numbers lost before this one", RED, "x"),
    ("probe", "keep-alive or window probe", GREY, "cross-thin-open"),
)

FRAME = "frame %{customdata}<br>"
TEXT = FRAME + "%{text}"
RTT = FRAME + "%{y:.3f} ms"
BLOCK = FRAME + "%{text}<br>%{y:.3f} ms"
FRAGMENTS = FRAME + "%{y} fragments"
EDGE = FRAME + "window to %{y:,}"
UPSTREAM = FRAME + "%{y} lost between sender and capture point"
DOWNSTREAM = FRAME + "%{y} lost between capture point and receiver"


def marks(key: str, name: str, panel: str, color: str, hover: str, size: int, symbol: str = "circle") -> Trace:
    """Returns points without a line."""
    return Trace(key, name, panel, color, "markers", symbol=symbol, hover=hover, size=size)


TRACES = (
    Trace("throughput0", "throughput →", "rate", BLUE, shape="hv", hover="%{y:.3s}bit/s →"),
    Trace("throughput1", "throughput ←", "rate", ORANGE, shape="hv", hover="%{y:.3s}bit/s ←"),
    Trace("cumulative0", "cumulative →", "rate", BLUE, dash="dash", hover="%{y:.3s}bit/s → so far"),
    Trace("cumulative1", "cumulative ←", "rate", ORANGE, dash="dash", hover="%{y:.3s}bit/s ← so far"),
    Trace("goodput0", "goodput →", "rate", GREEN, dash="dot", hover="%{y:.3s}bit/s → useful", shown="legendonly"),
    Trace("goodput1", "goodput ←", "rate", PURPLE, dash="dot", hover="%{y:.3s}bit/s ← useful", shown="legendonly"),
    Trace("window", "window edge", "sequence", PURPLE, "lines", "hv", "dot", "circle", EDGE, shown="legendonly"),
    Trace("ack", "acknowledged", "sequence", GREY, shape="hv", hover=FRAME + "acknowledged to %{y:,}"),
    marks("sack", "end of the newest SACK block", "sequence", GREEN, TEXT, 7, "line-ew-open"),
    marks("data", "data", "sequence", BLUE, TEXT, 4),
    *(marks(key, name, "sequence", color, TEXT, 9, symbol) for key, name, color, symbol in MARKS),
    marks("other", "data ←", "sequence", ORANGE, TEXT, 4),
    marks("rtt0", "RTT → (to the receiver and back)", "rtt", BLUE, RTT, 4),
    marks("rtt1", "RTT ←", "rtt", ORANGE, RTT, 4),
    Trace("upstream", "lost upstream", "losses", ORANGE, "lines+markers", "hv", hover=UPSTREAM),
    Trace("downstream", "lost downstream", "losses", RED, "lines+markers", "hv", hover=DOWNSTREAM),
    marks("latency", "sent to complete (both clocks)", "blocks", BLUE, BLOCK, 4),
    marks("waited", "head-of-line wait", "blocks", RED, BLOCK, 6, "diamond"),
    marks("whole", "complete datagram", "fragments", GREEN, FRAGMENTS, 5),
    marks("broken", "incomplete datagram", "fragments", RED, FRAGMENTS, 8, "x"),
)


def trace_data(trace: Trace, axis: int) -> dict[str, Any]:
    """Returns a trace without points."""
    line = {"color": trace.color, "shape": trace.shape, "dash": trace.dash, "width": 1.5}
    marker = {"color": trace.color, "symbol": trace.symbol, "size": trace.size}
    look = {"mode": trace.mode, "visible": trace.shown, "line": line, "marker": marker, "connectgaps": False}
    return scatter(trace.name, [], [], trace.hover, yaxis=axis_key(axis), meta=trace.key, **look)


def flow_figure() -> dict[str, Any]:
    """Returns the figure and its panels; the page stacks the panels that have data."""
    axes = {panel: number for number, (panel, _) in enumerate(PANELS, start=1)}
    title = {"text": "seconds since the start of the capture"}
    figure = plot(
        [trace_data(trace, axes[trace.panel]) for trace in TRACES],
        margin={"l": 76, "r": 16, "t": 8, "b": 44},
        hoversubplots="axis",
        dragmode="zoom",
        xaxis={"title": title, "zeroline": False, "anchor": "free", "position": 0, "exponentformat": "none"},
        **panel_axes({axes[panel]: {"title": {"text": title}} for panel, title in PANELS}),
    )
    return {"plot": figure, "panels": [{"name": panel, "axis": axes[panel]} for panel, _ in PANELS]}
