# SPDX-License-Identifier: Apache-2.0
"""The figure of a flow with its points, for Python, notebooks and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.time import show_time
from wiretale.analyzer.units import one_of
from wiretale.reports.figures.axes import range_of
from wiretale.reports.figures.lanes import evidence_of, evidence_shapes, evidence_traces, lane_trace
from wiretale.reports.figures.picture import WIDTH_PX
from wiretale.reports.figures.points import KEPT, FlowPoints, Points
from wiretale.reports.figures.styles import (
    COLORS,
    DRAWN,
    DRAWN_PANELS,
    GRID,
    INK,
    LANE,
    POSITIONS,
    height_of,
    panel_names,
    title_of,
)
from wiretale.reports.html.figures import Panel, Series, axis_key, panel_heads
from wiretale.reports.html.packing import base_time

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from wiretale.analyzer.trace import Trace

TOP_PX, BOTTOM_PX, BETWEEN_PX, LEFT_PX, RIGHT_PX = 64, 48, 28, 66, 220
MOST_EACH = KEPT * (WIDTH_PX - LEFT_PX - RIGHT_PX)  # points of each series: a column of time for each of pixels
MS_LETTERS = 23  # of a time with milliseconds
FRAME = "frame %{customdata}<br>"
POINT_LEAST = 0.004  # share of the range that the band of a single packet takes


def chosen_panels(asked_panels: Sequence[str], drawn: set[str], flow: int) -> list[Panel]:
    """Returns the panels to draw, from the top. UsageError if one does not exist or has no data."""
    names = panel_names(asked_panels)
    with_data = [panel.name for panel in DRAWN_PANELS if panel.name in drawn]
    if not with_data:
        raise UsageError(f"flow {flow}: it has no data for a figure")
    for name in sorted(names - drawn):
        raise UsageError(f"panel {name!r}: flow {flow} has no data for it (expected {one_of(with_data)})")
    return [panel for panel in DRAWN_PANELS if panel.name in drawn and (not names or panel.name in names)]


def numbered(name: str, number: int) -> str:
    """Returns Plotly's name of an axis or a legend: the first has no number."""
    return name if number == 1 else f"{name}{number}"


def bars(values: Sequence[Any], ends: Sequence[Any]) -> list[Any]:
    """Returns start, end and a gap for each bar."""
    return [value for pair in zip(values, ends, strict=True) for value in (*pair, None)]


def axes_of(number: int) -> dict[str, str]:
    """Returns the axis and the legend of the panel with this number, for a trace."""
    return {"yaxis": axis_key(number), "legend": numbered("legend", number)}


def trace_of(series: Series, points: Points, number: int) -> dict[str, Any]:
    """Returns a series as a trace of Plotly, in the panel with this number."""
    is_bar, color = series.mode == "bars", COLORS[series.color]
    x, y, frames, texts = points.x, list(points.y), points.frames, points.texts
    if is_bar:
        x, y = bars(x, x), bars(y, [low if high is None else high for low, high in zip(y, points.y2, strict=True)])
        frames, texts = bars(frames, frames), bars(texts, texts)
    trace: dict[str, Any] = {"type": "scatter", "name": series.name, "meta": series.key, "x": x, "y": y}
    trace |= {**axes_of(number), "showlegend": True}
    if series.mode == "marks":
        line = {"width": 2, "color": color}  # of shapes that are lines
        trace |= {
            "mode": "markers",
            "marker": {"color": color, "symbol": series.symbol, "size": series.size, "line": line},
        }
        if series.symbol in ("circle", "diamond"):
            trace["marker"]["line"] = {"width": 0}
    else:
        shape = "hv" if series.mode == "steps" else "linear"
        width = series.size if is_bar else 1.5
        trace |= {"mode": "lines", "line": {"color": color, "dash": series.dash, "width": width, "shape": shape}}
        if series.fill:
            trace |= {
                "fill": "tozeroy",
                "fillcolor": f"rgba({', '.join(str(int(color[at : at + 2], 16)) for at in (1, 3, 5))}, 0.13)",
            }
    hover = "%{y:,}"
    if any(text is not None for text in texts):
        trace["text"], hover = texts, "%{text}"
    if any(frame is not None for frame in frames):
        trace["customdata"], hover = frames, FRAME + hover
    return {**trace, "hovertemplate": hover + "<extra></extra>", "connectgaps": False}


def layout_of(panels: Sequence[Panel], points: dict[str, Points], title: str, since: str) -> dict[str, Any]:
    """Returns the layout: panels one below the other over one time axis, each with its legend at the right."""
    inner = sum(map(height_of, panels)) + BETWEEN_PX * (len(panels) - 1)
    layout: dict[str, Any] = {
        "template": "none",
        "hovermode": "closest",
        "title": {"text": title, "x": 0, "xref": "paper", "font": {"size": 14}},
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": INK},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "margin": {"l": LEFT_PX, "r": RIGHT_PX, "t": TOP_PX, "b": BOTTOM_PX},
        "height": TOP_PX + inner + BOTTOM_PX,
        "xaxis": {"title": {"text": since}, "zeroline": False, "gridcolor": GRID, "anchor": "free", "position": 0},
    }
    top = 0
    for number, panel in enumerate(panels, start=1):
        below = top + height_of(panel)
        place = (
            {"y": max(0.0, 1 - below / inner), "yanchor": "bottom"}
            if panel.name == LANE
            else {"y": 1 - top / inner, "yanchor": "top"}
        )
        layout[numbered("legend", number)] = {"x": 1.01, "tracegroupgap": 0, **place}
        layout[numbered("yaxis", number)] = {
            "title": {"text": title_of(panel)},
            "domain": [max(0.0, 1 - below / inner), 1 - top / inner],
            "type": "log" if panel.log else "linear",
            "rangemode": "normal" if panel.name in POSITIONS else "tozero",
            "zeroline": False,
            "gridcolor": GRID,
            **numbers_of(panel),
            **axis_of(panel, points),
        }
        top = below + BETWEEN_PX
    layout["meta"] = {"panels": [panel.name for panel in panels]}
    layout["annotations"] = panel_heads(layout)  # which takes the titles
    return layout


def numbers_of(panel: Panel) -> dict[str, Any]:
    """Returns how Plotly writes the numbers of a panel at any zoom: its prefix stands before a unit, as 60MB, never alone."""
    if panel.unit in ("bytes", "bit/s"):
        return {"exponentformat": "SI", "ticksuffix": "B" if panel.unit == "bytes" else panel.unit}
    return {"exponentformat": "none", "separatethousands": True}


def axis_of(panel: Panel, points: dict[str, Points]) -> dict[str, Any]:
    """Returns the range of the axis of a panel; the lane of the time has no values."""
    if panel.name == LANE:
        return {"range": [0, 1], "showticklabels": False, "showgrid": False, "ticks": ""}
    keys = [series.key for series in DRAWN if series.panel == panel.name and series.key in points]
    return {"range": list(range_of(panel, {key: points[key] for key in keys}))}


def make_figure(trace: Trace, flow: int, panels: Sequence[str], most: int | None) -> Figure:
    """Returns the figure of a flow with some panels, or all that have data. At most `most` points are drawn, or all for None.

    Raises UsageError if a panel does not exist or has no data, and the errors of Trace.packets().
    """
    from plotly import graph_objects as go

    name = trace.flow(flow).name
    with FlowPoints(trace, flow, None if most is None else max(MOST_EACH, most // len(DRAWN))) as points:
        points_by_key, lasted_ns = points.all(), points.lasted_ns()
        lanes = points.lanes(lasted_ns // WIDTH_PX)
    panels_with_data = {series.panel for series in DRAWN if series.key in points_by_key} | ({LANE} if lanes else set())
    panels_drawn = chosen_panels(panels, panels_with_data, flow)
    places = {panel.name: number for number, panel in enumerate(panels_drawn, start=1)}
    series_drawn = [series for series in DRAWN if series.key in points_by_key and series.panel in places]
    traces = [trace_of(series, points_by_key[series.key], places[series.panel]) for series in series_drawn]
    if LANE in places:
        traces += [lane_trace(lane, axes_of(places[LANE])) for lane in lanes]
    causes = evidence_of(trace, flow)
    traces += evidence_traces(causes, axes_of(1))
    since = f"seconds since {show_time(base_time(trace))[:MS_LETTERS]}"
    layout = layout_of(panels_drawn, points_by_key, name.replace("<", "&lt;"), since)
    return go.Figure(traces, {**layout, "shapes": evidence_shapes(causes, POINT_LEAST * lasted_ns / 1e9)})
