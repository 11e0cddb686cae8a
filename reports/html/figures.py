# SPDX-License-Identifier: Apache-2.0
"""The figure of a flow: panels over one time axis, as Plotly's JSON. The page fills in what is in view."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

BLUE, ORANGE, GREEN, RED, GREY, PURPLE = "#2f6fb0", "#d97a1f", "#3a8f5c", "#c93c37", "#8a94a0", "#7a5bb5"


@dataclass(frozen=True)
class Trace:
    """A line or points of a panel; `key` is how the page's script names its data."""

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
    ("losses", "lost so far"),
    ("blocks", "block delay, ms"),
    ("fragments", "fragments"),
)

# Verdicts as marks on the time-sequence graph, by events.kind (reports/html/page/capture.js groups the rest).
MARKS = (
    ("fast_retransmission", "fast retransmission", RED, "diamond"),
    ("timeout_retransmission", "timeout retransmission", RED, "x"),
    ("probe_retransmission", "tail-loss probe", RED, "diamond-open"),
    ("retransmission", "retransmission, cause unknown", RED, "circle-open"),
    ("out_of_order", "out of order", PURPLE, "triangle-left"),
    ("ambiguous", "late or sent again", PURPLE, "triangle-left-open"),
    ("copy", "copy (network or mirror)", GREY, "square-open"),
    ("duplicate_ack", "duplicate ACK", GREY, "line-ew-open"),
    ("acked_unseen_segment", "missed by the capture", ORANGE, "star-open"),
    ("window_closed", "window closed or full", PURPLE, "line-ns-open"),
    ("block_lost", "numbers lost before it", RED, "x"),
    ("probe", "keep-alive or window probe", GREY, "cross-thin-open"),
)

FRAME = "frame %{customdata}<br>"
BLOCK = FRAME + "%{text}<br>%{y:.3f} ms"
TRACES = (
    Trace("throughput0", "throughput →", "rate", BLUE, shape="hv", hover="%{y:.3s}bit/s →"),
    Trace("throughput1", "throughput ←", "rate", ORANGE, shape="hv", hover="%{y:.3s}bit/s ←"),
    Trace("cumulative0", "cumulative →", "rate", BLUE, dash="dash", hover="%{y:.3s}bit/s → so far"),
    Trace("cumulative1", "cumulative ←", "rate", ORANGE, dash="dash", hover="%{y:.3s}bit/s ← so far"),
    Trace("goodput0", "goodput →", "rate", GREEN, dash="dot", hover="%{y:.3s}bit/s → useful", shown="legendonly"),
    Trace("goodput1", "goodput ←", "rate", PURPLE, dash="dot", hover="%{y:.3s}bit/s ← useful", shown="legendonly"),
    Trace(
        "window",
        "window edge",
        "sequence",
        PURPLE,
        shape="hv",
        dash="dot",
        hover=FRAME + "window to %{y:,}",
        shown="legendonly",
    ),
    Trace("ack", "acknowledged", "sequence", GREY, shape="hv", hover=FRAME + "acknowledged to %{y:,}"),
    Trace(
        *("sack", "end of the newest SACK block", "sequence", GREEN),
        mode="markers",
        symbol="line-ew-open",
        hover=FRAME + "%{text}",
        size=7,
    ),
    Trace("data", "data", "sequence", BLUE, mode="markers", symbol="circle", hover=FRAME + "%{text}", size=4),
    *(
        Trace(key, name, "sequence", color, mode="markers", symbol=symbol, hover=FRAME + "%{text}", size=9)
        for key, name, color, symbol in MARKS
    ),
    Trace("other", "data ←", "sequence", ORANGE, mode="markers", hover=FRAME + "%{text}", size=4),
    Trace("rtt0", "RTT → (to the receiver and back)", "rtt", BLUE, mode="markers", hover=FRAME + "%{y:.3f} ms", size=4),
    Trace("rtt1", "RTT ←", "rtt", ORANGE, mode="markers", hover=FRAME + "%{y:.3f} ms", size=4),
    Trace(
        "upstream",
        "lost upstream",
        "losses",
        ORANGE,
        mode="lines+markers",
        shape="hv",
        hover=FRAME + "%{y} lost between sender and here",
    ),
    Trace(
        "downstream",
        "lost downstream",
        "losses",
        RED,
        mode="lines+markers",
        shape="hv",
        hover=FRAME + "%{y} lost beyond this point",
    ),
    Trace("latency", "sent to complete (both clocks)", "blocks", BLUE, mode="markers", hover=BLOCK, size=4),
    Trace("waited", "head-of-line wait", "blocks", RED, mode="markers", symbol="diamond", hover=BLOCK, size=6),
    Trace("whole", "complete datagram", "fragments", GREEN, mode="markers", hover=FRAME + "%{y} fragments", size=5),
    Trace(
        "broken",
        "incomplete datagram",
        "fragments",
        RED,
        mode="markers",
        symbol="x",
        hover=FRAME + "%{y} fragments",
        size=8,
    ),
)


def trace_figure(trace: Trace, axis: int) -> Any:
    """A trace without data."""
    from plotly import graph_objects as go

    return go.Scatter(
        name=trace.name,
        mode=trace.mode,
        visible=trace.shown,
        x=[],
        y=[],
        line={"color": trace.color, "shape": trace.shape, "dash": trace.dash, "width": 1.5},
        marker={"color": trace.color, "symbol": trace.symbol, "size": trace.size},
        hovertemplate=trace.hover + "<extra></extra>",
        yaxis="y" if axis == 1 else f"y{axis}",
        meta=trace.key,
        connectgaps=False,
    )


def flow_figure() -> dict[str, Any]:
    """Figure and panels; the page stacks the panels that have data."""
    from plotly import graph_objects as go

    axes = {panel: number for number, (panel, _) in enumerate(PANELS, start=1)}
    figure = go.Figure([trace_figure(trace, axes[trace.panel]) for trace in TRACES])
    figure.update_layout(
        template="none",
        margin={"l": 76, "r": 16, "t": 8, "b": 44},
        hovermode="closest",
        hoversubplots="axis",
        dragmode="zoom",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        font={"family": "system-ui, sans-serif", "size": 12},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    figure.update_xaxes(
        title="seconds since the start of the capture", zeroline=False, anchor="free", position=0, exponentformat="none"
    )
    for panel, title in PANELS:
        name = "yaxis" if axes[panel] == 1 else f"yaxis{axes[panel]}"
        figure.update_layout({name: {"title": {"text": title}, "zeroline": False, "exponentformat": "SI"}})
    return {"plot": json.loads(figure.to_json()), "panels": [{"name": p, "axis": axes[p]} for p, _ in PANELS]}
