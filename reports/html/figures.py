# SPDX-License-Identifier: Apache-2.0
"""Plotly figures: the layout that all pages share, and the panels of a flow over one time axis.

The panels of a flow have no data: the page fills in the points that are in view.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

# The colors of page.css on white; page/plotly.js replaces them by those of the page as it is shown.
SENDER, RECEIVER, NETWORK, SERVER, MUTED = "#2a3540", "#008a7a", "#b93a06", "#6b4aa8", "#55626f"
# For what lies side by side and has no meaning of its own: runs, tests, hops.
SEVERAL = ("#478fff", "#d66b24", "#47006b", "#8f2400", "#8f8f8f", "#4700ff", "#474747", "#000000")
HEAD_PX = 22  # above a panel
GUTTER = 52  # left of a panel, as in a capture's page
LAYOUT: dict[str, Any] = {
    "template": "none",
    "hovermode": "closest",
    "hoverdistance": 40,
    "legend": {"orientation": "h", "yanchor": "bottom", "x": 0},
    "font": {"family": "system-ui, sans-serif", "size": 12},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
}


def plot(traces: list[dict[str, Any]], **layout: Any) -> dict[str, Any]:
    """Returns a figure as JSON. Plotly checks it: an unknown key is an error at this point, not an empty figure later."""
    from plotly import graph_objects as go

    heads = panel_heads(layout)
    room = max(60, layout.get("height", 450) - sum(layout.get("margin", {}).get(side, 40) for side in "tb"))
    settings = {**LAYOUT, **layout, "annotations": [*layout.get("annotations", []), *heads]}
    settings["legend"] = {"y": 1 + (HEAD_PX if heads else 4) / room, **settings["legend"]}
    if heads:
        settings["margin"] = {**settings["margin"], "l": GUTTER, "t": max(HEAD_PX, settings["margin"]["t"])}
    return dict(json.loads(go.Figure(traces, settings, skip_invalid=False).to_json()))


def panel_heads(layout: dict[str, Any]) -> list[dict[str, Any]]:
    """Takes the titles of the y axes, and returns them as heads above their panels, with the unit after the name."""
    heads = []
    for key in [key for key in layout if key.startswith("yaxis") and layout[key].get("title")]:
        axis = dict(layout[key])
        name, _, unit = axis.pop("title")["text"].partition(", ")
        layout[key] = axis
        place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": f"{key.replace('yaxis', 'y')} domain", "y": 1}
        text = f"<b>{name[:1].upper()}{name[1:]}</b> {unit}"
        heads.append({**place, "yanchor": "bottom", "text": text, "showarrow": False, "name": key})
    return heads


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
class Panel:
    """A panel of a flow: its height in px, and the unit of its values, which is "bytes", "bit/s", "ms" or "" for a count."""

    name: str
    title: str
    unit: str
    height: int
    visible: bool = True
    log: bool = False  # usual scale


@dataclass(frozen=True)
class Series:
    """A series of a panel; `key` names its points in the scripts of the page, `color` is a token of page.css.

    Modes: "bars" are vertical, from the first to the last byte; "steps" and "lines" are lines; "marks" are points; "bands" are
    colored times.
    """

    key: str
    name: str
    panel: str
    color: str
    mode: str = "steps"
    dash: str = "solid"
    symbol: str = "circle"
    size: float = 4
    visible: bool = True
    fill: bool = False
    about: str = ""


PANELS = (
    Panel("sequence", "Sequence", "bytes", 300),
    Panel("numbers", "Number", "", 300),
    Panel("flight", "In flight", "bytes", 84),
    Panel("rate", "Throughput", "bit/s", 72),
    Panel("rtt", "Round trip", "ms", 64),
    Panel("blocks", "Delay of blocks", "ms", 64),
    Panel("jitter", "Jitter", "ms", 64),
    Panel("spacing", "Time since the previous packet", "ms", 64, log=True),
    Panel("fragments", "Fragments", "", 64),
    Panel("losses", "Lost so far", "", 64, visible=False),
    Panel("parts", "Time", "", 14),
)

# Verdicts as shapes on the sequence panel, by events.kind (page/flow/verdicts.js groups the rest).
MARKS = (
    ("fast_retransmission", "fast", "network", "diamond"),
    ("timeout_retransmission", "by timeout", "network", "x-thin"),
    ("probe_retransmission", "probe", "network", "triangle-up-open"),
    ("retransmission", "cause unknown", "network", "circle-open"),
    ("out_of_order", "out of order", "muted", "triangle-left"),
    ("ambiguous", "reordered or retransmitted", "muted", "triangle-left-open"),
    ("copy", "duplicate", "muted", "square-open"),
    ("duplicate_ack", "duplicate ACK", "muted", "line-ew"),
    ("acked_unseen_segment", "not captured", "muted", "star"),
    ("window_closed", "window closed or full", "receiver", "line-ns"),
    ("keep_alive", "keep-alive or window probe", "muted", "cross-thin"),
)
CWND = "The most bytes in flight, without those that SACK blocks report, in the last round trip. Not seen: estimated."
PROGRESS = "By bins of the series table, because the page does not have the packets of this flow."
FLIGHT = "Bytes sent and not yet acknowledged, at the capture point."
JITTER = "Smoothed difference of delays between numbers that follow each other (RFC 3550 section 6.4.1)."

SERIES = (
    Series("window", "window edge", "sequence", "receiver", dash="dash"),
    Series("ack", "acknowledged", "sequence", "receiver"),
    Series("sack", "SACK", "sequence", "receiver", "bars", size=4),
    Series("data", "segment", "sequence", "sender", "bars", size=2),
    Series("other", "packets ←", "sequence", "receiver", "bars", size=2),
    Series("again", "retransmitted", "sequence", "network", "bars", size=2.5),
    Series("progress", "new data so far", "sequence", "sender", "lines", about=PROGRESS),
    Series("lost", "lost original", "sequence", "network", "marks", symbol="line-ew", size=7),
    *(Series(key, name, "sequence", color, "marks", symbol=symbol, size=9) for key, name, color, symbol in MARKS),
    Series("number0", "number →", "numbers", "sender", "marks", size=4),
    Series("number1", "number ←", "numbers", "receiver", "marks", size=4),
    Series("missing", "missing numbers", "numbers", "network", "bars", size=3),
    Series("number_late", "out of order", "numbers", "muted", "marks", symbol="triangle-left", size=9),
    Series("number_copy", "duplicate", "numbers", "muted", "marks", symbol="square-open", size=9),
    Series("number_bad", "late or damaged", "numbers", "network", "marks", symbol="circle-open", size=9),
    Series("flight", "in flight", "flight", "sender", fill=True, about=FLIGHT),
    Series("cwnd", "congestion window, estimated", "flight", "muted", dash="dot", about=CWND),
    Series("room", "receive window", "flight", "receiver", dash="dash"),
    Series("throughput0", "IP →", "rate", "sender", fill=True),
    Series("throughput1", "IP ←", "rate", "muted", dash="dot"),
    Series("acked", "acknowledged", "rate", "receiver"),
    Series("rtt0", "→ and back", "rtt", "sender", "marks", size=3.5),
    Series("rtt1", "← and back", "rtt", "receiver", "marks", size=3.5),
    Series("least", "least", "rtt", "axis", "lines", dash="dash"),
    Series("latency", "sent to complete (both clocks)", "blocks", "sender", "marks", size=3.5),
    Series("waited", "head-of-line wait", "blocks", "network", "marks", symbol="diamond", size=6),
    Series("jitter0", "jitter →", "jitter", "sender", "lines", about=JITTER),
    Series("jitter1", "jitter ←", "jitter", "receiver", "lines", about=JITTER),
    Series("spacing0", "→", "spacing", "sender", "marks", size=3.5),
    Series("spacing1", "←", "spacing", "receiver", "marks", size=3.5),
    Series("whole", "complete datagram", "fragments", "receiver", "marks", size=4),
    Series("broken", "incomplete datagram", "fragments", "network", "marks", symbol="x-thin", size=8),
    Series("upstream", "before the capture point", "losses", "muted"),
    Series("downstream", "after the capture point", "losses", "network"),
    Series("parts", "time", "parts", "muted", "bands"),
)


def page_entry(part: Panel | Series) -> dict[str, Any]:
    """Returns a panel or a series with the keys that the scripts of the page read."""
    entry = asdict(part)
    entry["shown"] = entry.pop("visible")
    return entry


def flow_figure() -> dict[str, Any]:
    """Returns the panels of a flow and their series; the page stacks the panels that have data."""
    return {"panels": [page_entry(panel) for panel in PANELS], "series": [page_entry(series) for series in SERIES]}
