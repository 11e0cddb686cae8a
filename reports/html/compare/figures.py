# SPDX-License-Identifier: Apache-2.0
"""Figures of several capture points: losses as a Sankey diagram, delays over time, and the distribution of delays.

The Sankey diagram consists of filled curves, because the Plotly bundle of the pages has no such trace.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.compare.loss_location import PLACES, Ledger, place_between
from wiretale.analyzer.units import show_count, show_share
from wiretale.reports.html.figures import MUTED, NETWORK, SENDER, SEVERAL, plot, scatter
from wiretale.reports.phrases import stage_name

if TYPE_CHECKING:
    from wiretale.analyzer.compare.one_way_delay import Delay

BAR = 0.035  # half a stage's width; stages are 1 apart
THIN = 0.012  # least height of a loss, so that it stays visible
DEPTH = 0.3  # distance of the ends of losses below the stages
CURVE = 24  # points per curve
LOSS_ENDS = ((), (0.5,), (0.95, 0.3))  # ends of the losses between two stages, by their number
FEW = 4  # packets; Plotly chooses whole ticks above this
LABEL_WIDTH, HEAD_WIDTH = 18, 12  # characters
LEGEND_WIDTH = 34  # characters that fit on a phone
COLORS = SEVERAL


def area(x: list[float], y: list[float], color: str, text: str, opacity: float = 1) -> dict[str, Any]:
    """Returns a filled outline with a hover text."""
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "fill": "toself",
        "mode": "lines",
        "line": {"width": 0},
        "fillcolor": color,
        "opacity": opacity,
        "hoveron": "fills",
        "text": text,
        "hoverinfo": "text",
        "showlegend": False,
    }


def band(start: tuple[float, float], end: tuple[float, float], height: float, color: str, text: str) -> dict[str, Any]:
    """Returns a band of constant height, whose upper edge leads from `start` to `end` with horizontal ends."""
    steps = [n / CURVE for n in range(CURVE + 1)]
    x = [start[0] + (end[0] - start[0]) * t for t in steps]
    y = [start[1] + (end[1] - start[1]) * (t * t * (3 - 2 * t)) for t in steps]
    outline = [*y, *(value - height for value in reversed(y))]
    return area([*x, *reversed(x)], outline, color, text, 0.85 if color == NETWORK else 0.3)


def label(x: float, y: float, text: str, **more: Any) -> dict[str, Any]:
    """Returns text in a figure."""
    return {"x": x, "y": y, "text": text, "showarrow": False, **more}


def losses_between(ledger: Ledger, before: str, after: str) -> list[tuple[str, int]]:
    """Returns the losses between two stages by place."""
    place = place_between(before, after, "receiver_kernel" in ledger.lost)
    places = ["capture", place] if after == ledger.stages[-1].name else [place]
    if after == "received":
        places = ["receiver_kernel", place]
    return [(where, ledger.lost[where]) for where in dict.fromkeys(places) if ledger.lost.get(where)]


def sankey(ledger: Ledger) -> dict[str, Any]:
    """Returns the diagram of stages and losses."""
    traces: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    sent, branches = max(ledger.sent, 1), 0
    heights = [stage.had / sent for stage in ledger.stages]
    for number, (stage, height) in enumerate(zip(ledger.stages, heights, strict=True)):
        missed = f"<br>{stage.missed:,} unseen" if stage.missed else ""
        name, left, right, foot = stage_name(stage.role), number - BAR, number + BAR, 1 - max(height, THIN)
        text = f"{name}: {stage.had:,} {ledger.unit}{missed}"
        traces.append(area([left, right, right, left], [1, 1, foot, foot], SENDER, text))
        head = "<br>".join(wrap(name, HEAD_WIDTH))
        labels.append(label(number, 1.03, f"<b>{head}</b><br>{show_count(stage.had)}{missed}", yanchor="bottom"))
    for number, (before, after) in enumerate(pairwise(ledger.stages)):
        height = heights[number + 1]
        text = f"{after.had:,} {ledger.unit} went on"
        if height:
            traces.append(band((number + BAR, 1), (number + 1 - BAR, 1), height, SENDER, text))
        lost = losses_between(ledger, before.name, after.name)
        tops = accumulate((count / sent for _, count in lost), initial=height)
        # The lowest band must leave first, because bands must not cross.
        ends = LOSS_ENDS[len(lost)]
        for (place, count), top, end in zip(lost, tops, ends, strict=False):
            thick = max(count / sent, THIN)
            text = f"{count:,} lost {PLACES[place]}".replace("lost never", "never")
            traces.append(band((number + BAR, 1 - top), (number + end, thick - DEPTH), thick, NETWORK, text))
            words = "<br>".join(wrap(PLACES[place], LABEL_WIDTH))
            share = f"<b>{count:,}</b> ({show_share(count, sent)})"
            labels.append(label(number + end, -DEPTH - 0.04, f"{share}<br>{words}", yanchor="top"))
            branches += 1
    depth = -DEPTH - 0.62 if branches else -0.05
    axis = {"visible": False, "fixedrange": True}
    diagram = plot(
        traces,
        height=400 if branches else 230,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        dragmode=False,
        annotations=labels,
        xaxis={**axis, "range": [-0.45, max(len(ledger.stages) - 0.3, 0.6)]},
        yaxis={**axis, "range": [depth, 1.42]},
    )
    return {**diagram, "config": {"displayModeBar": False}}


def delay_name(delay: Delay) -> str:
    """Returns the name of a hop."""
    return f"{delay.start} → {delay.end}"


def legend_name(text: str) -> str:
    """Returns a name in lines that fit on a narrow screen."""
    return "<br>".join(wrap(text, LEGEND_WIDTH))


def delays_over_time(delays: list[Delay], base_ns: int) -> dict[str, Any]:
    """Returns the median of each bin, and the 99th percentile as a thinner line."""
    traces = []
    for number, delay in enumerate(delays):
        name, color = delay_name(delay), COLORS[number % len(COLORS)]
        seconds = [(row["moment"] - base_ns) / 1e9 for row in delay.series]
        medians, p99s = [row["median"] for row in delay.series], [row["p99"] for row in delay.series]
        for column, delays_ns, width, dash in (("median", medians, 1.8, "solid"), ("p99", p99s, 1, "dot")):
            milliseconds = [delay_ns / 1e6 for delay_ns in delays_ns]
            look = {
                "mode": "lines+markers" if len(seconds) < 3 else "lines",
                "legendgroup": name,
                "showlegend": column == "median",
                "line": {"color": color, "width": width, "dash": dash, "shape": "linear"},
            }
            hover = f"{name}<br>%{{x:.3f}} s<br>%{{y:.3f}} ms {column}"
            traces.append(scatter(legend_name(name), seconds, milliseconds, hover, **look))
    title = "one-way delay, ms" if all(delay.absolute for delay in delays) else "delay above the minimum, ms"
    return plot(traces, **plain_axes("seconds since the first packet", title))


def distribution(delays: list[Delay]) -> dict[str, Any]:
    """Returns the cumulative distribution of delays."""
    traces = []
    for number, delay in enumerate(delays):
        low, width, counts = delay.histogram
        total = sum(counts) or 1
        x = [(low + width * n) / 1e6 for n in range(len(counts) + 1)]
        y = [100 * share / total for share in accumulate(counts, initial=0)]
        hover = f"{delay_name(delay)}<br>%{{y:.1f}}% within %{{x:.3f}} ms"
        line = {"color": COLORS[number % len(COLORS)], "width": 1.8, "shape": "hv"}
        traces.append(scatter(legend_name(delay_name(delay)), x, y, hover, mode="lines", line=line))
    return plot(traces, **plain_axes("one-way delay, ms", "packets, %"))


def losses_over_time(bins: list[dict[str, Any]], base_ns: int) -> dict[str, Any]:
    """Returns the packets lost in each bin, by place and direction."""
    traces = []
    ways = list(dict.fromkeys((row["way"], row["place"]) for row in bins))
    for number, (way, place) in enumerate(ways):
        rows = [row for row in bins if (row["way"], row["place"]) == (way, place)]
        traces.append(
            {
                "type": "bar",
                "name": legend_name(f"{way}, {PLACES[place]}"),
                "x": [(row["moment"] - base_ns) / 1e9 for row in rows],
                "y": [row["packets"] for row in rows],
                "width": [max(row["width"] / 1e9, 1e-9) for row in rows],
                "marker": {"color": (NETWORK, SENDER, MUTED, SEVERAL[0])[number % 4]},
                "hovertemplate": f"{PLACES[place]}<br>%{{x:.3f}} s<br>%{{y}} packets<extra></extra>",
            }
        )
    layout = {**plain_axes("seconds since the first packet", "packets lost"), "barmode": "stack"}
    if max(row["packets"] for row in bins) <= FEW:
        layout["yaxis"]["dtick"] = 1  # packets are whole
    return plot(traces, **layout)


def plain_axes(x: str, y: str) -> dict[str, Any]:
    """Returns a layout with two titled axes."""
    return {
        "height": 360,
        "margin": {"l": 64, "r": 16, "t": 8, "b": 44},
        "showlegend": True,
        "xaxis": {"title": {"text": x}, "zeroline": False},
        "yaxis": {"title": {"text": y}, "rangemode": "tozero", "zeroline": False},
    }
