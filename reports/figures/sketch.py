# SPDX-License-Identifier: Apache-2.0
"""A small plot of one flow as SVG, for the HTML of a notebook: it needs no script and has some kilobytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from wiretale.reports.figures.points import FlowPoints, Points
from wiretale.reports.figures.styles import COLORS, DRAWN, DRAWN_PANELS, GRID, INK, POSITIONS, title_of
from wiretale.reports.html.figures import Panel, Series

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 220, 8, 22, 24
SIZE = f'width="{WIDTH}" height="{HEIGHT}"'
POINTS_EACH = 300
LEFT_OUT = ("window",)  # would squeeze the others


def drawn(series: Series, points: Points, across: Scale, up: Scale) -> Iterator[str]:
    """Yields the elements of one series."""
    color = COLORS[series.color]
    if series.mode == "bars":
        ends = (y if y2 is None else y2 for y, y2 in zip(points.y, points.y2, strict=True))
        path = "".join(
            f"M{across(x)} {up(low)}V{up(high)}" for x, low, high in zip(points.x, points.y, ends, strict=True)
        )
        yield f'<path d="{path}" stroke="{color}" stroke-width="{series.size}"/>'
    elif series.mode == "marks":
        for x, y in zip(points.x, points.y, strict=True):
            yield f'<circle cx="{across(x)}" cy="{up(y)}" r="{series.size / 2:g}" fill="{color}"/>'
    else:
        steps = "".join(f"H{across(x)}V{up(y)}" for x, y in zip(points.x[1:], points.y[1:], strict=True))
        dash = ' stroke-dasharray="5 4"' if series.dash != "solid" else ""
        yield f'<path d="M{across(points.x[0])} {up(points.y[0])}{steps}" fill="none" stroke="{color}"{dash}/>'


class Scale:
    """Maps values to pixels."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        self.low, self.high = min(values), max(values)
        self.first, self.factor = first, (last - first) / (self.high - self.low or 1)

    def __call__(self, value: float) -> str:
        return f"{self.first + (value - self.low) * self.factor:.1f}"


def values_of(points: Iterable[Points]) -> list[float]:
    """Returns every y of these series."""
    return [y for line in points for y in (*line.y, *(high for high in line.y2 if high is not None))]


def first_panel(points: dict[str, Points]) -> tuple[Panel, list[Series]] | None:
    """Returns the first panel that has data, and its series."""
    for panel in DRAWN_PANELS:
        series_drawn = [series for series in DRAWN if series.panel == panel.name and series.key in points]
        if series_drawn:
            return panel, series_drawn
    return None


def sketch(trace: Trace, flow: int) -> str:
    """Returns the first panel of a flow that has data, as SVG; nothing if no panel has any."""
    with FlowPoints(trace, flow, POINTS_EACH) as read:
        points_by_key = {key: points for key, points in read.all().items() if key not in LEFT_OUT}
    first = first_panel(points_by_key)
    if first is None:
        return ""
    panel, series_drawn = first
    points = [points_by_key[series.key] for series in series_drawn]
    across = Scale([x for line in points for x in line.x], LEFT, WIDTH - LEFT)
    up = Scale([*values_of(points), *([] if panel.name in POSITIONS else [0])], HEIGHT - BOTTOM, TOP)
    parts = [part for series in series_drawn for part in drawn(series, points_by_key[series.key], across, up)]
    names = f"{title_of(panel)}: {', '.join(series.name for series in series_drawn)}"
    return svg(parts, {TOP - 8: names, HEIGHT - 6: f"{across.low:.3f} to {across.high:.3f} s"})


def svg(parts: Sequence[str], texts: dict[int, str]) -> str:
    """Returns the image; `texts` are by their height."""
    lines = [f'<text x="{LEFT}" y="{y}" font-size="12" fill="{INK}">{escape(text)}</text>' for y, text in texts.items()]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {SIZE} role="img">'
    axis = f'<path d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - LEFT}" stroke="{GRID}"/>'
    return "".join([head, f'<rect {SIZE} fill="#ffffff"/>', axis, *parts, *lines, "</svg>"])
