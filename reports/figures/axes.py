# SPDX-License-Identifier: Apache-2.0
"""The value axes of a flow's figure as the page has them (page/flow/axes.js): ranges, ticks, and the unit that the head of a
panel names."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, inf, log10
from typing import TYPE_CHECKING

from wiretale.reports.figures.points import Points, round_step
from wiretale.reports.figures.styles import POSITIONS, height_of

if TYPE_CHECKING:
    from wiretale.reports.html.figures import Panel

Range = tuple[float, float]
MARGIN = 0.06  # share of an axis beyond the points
MARK_PX = 10  # room between the last points and an edge, so that no mark is cut
WINDOWS = {"window": 0.35, "room": 1.5}  # share of the range by which an axis grows to show a window's line
FAR, USUAL, MANY = 6, 0.95, 40  # an axis from zero leaves out points that are so many times above most of many
TALL_PX = 150  # from which an axis has more ticks
MS_SCALES = ((1e4, 1e3, "s"), (0.0, 1.0, "ms"))  # from so many ms on
SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def values_of(points: Points) -> list[float]:
    """Returns every y of a series, of bars both ends."""
    return [*points.y, *(high for high in points.y2 if high is not None)]


def room_beyond(panel: Panel, span: float, edges: int) -> float:
    """Returns the room beyond a range of values that leaves a share of it, and place for a mark."""
    return max(MARGIN, MARK_PX / (height_of(panel) - edges * MARK_PX)) * span


def log_range(panel: Panel, values: Sequence[float]) -> Range:
    """Returns the range of a logarithmic axis, as exponents of ten."""
    least = min((value for value in values if value > 0), default=1.0)
    low, high = log10(least), log10(max(*values, least))
    beyond = max(0.1, room_beyond(panel, high - low, 2))
    return low - beyond, high + beyond


def from_zero(panel: Panel, values: Sequence[float], window: float) -> Range:
    """Returns the range of an axis from zero: all values, unless a few are far above the others."""
    most, usual = max(max(values), window), sorted(values)[floor((len(values) - 1) * USUAL)]
    high = 2 * usual if usual > 0 and most > FAR * usual and len(values) >= MANY else most
    return (0.0, high + room_beyond(panel, high, 1)) if high > 0 else (0.0, 1.0)


def range_of(panel: Panel, points_by_key: dict[str, Points]) -> Range:
    """Returns the range of a panel with these series: the receiver's windows widen it only if they are near."""
    values = [y for key, points in points_by_key.items() if key not in WINDOWS for y in values_of(points)]
    window = max(
        (y for key, points in points_by_key.items() if key in WINDOWS for y in values_of(points)), default=-inf
    )
    if not values:
        values, window = [window], -inf
    if panel.log:
        return log_range(panel, values)
    low, high = min(values), max(values)
    if panel.name not in POSITIONS:
        return from_zero(panel, values, window if window <= high * (1 + WINDOWS["room"]) else -inf)
    grown = max(high, window) if window <= high + WINDOWS["window"] * (high - low) else high
    margin = room_beyond(panel, grown - low, 2) or abs(grown) * MARGIN or 1.0
    return low - margin, grown + margin


def log_ticks(axis: Range) -> tuple[list[float], list[str], str]:
    """Returns the ticks of a logarithmic axis in ms."""
    powers = range(floor(axis[0]), floor(axis[1]) + 1)
    inside = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    inside = [value for value in inside if axis[0] <= log10(value) <= axis[1]]
    tens = [value for value in inside if abs(log10(value) - round(log10(value))) < 1e-9]
    ticks = inside if len(inside) <= 4 else tens[:: ceil(len(tens) / 4)] if len(tens) >= 2 else inside[::2]
    scale, unit = next((scale, unit) for least, scale, unit in MS_SCALES if max(ticks, default=0.0) >= least)
    return ticks, [f"{value / scale:.3g}" for value in ticks], unit


def round_values(panel: Panel, axis: Range) -> tuple[float, list[float]]:
    """Returns a round step and the ticks of an axis: whole numbers from 0 on, or any time."""
    step = round_step((axis[1] - axis[0]) / (5 if height_of(panel) > TALL_PX else 2.5))
    first, last = ceil(axis[0] / step - 1e-9), floor(axis[1] / step + 1e-9)
    ticks = [number * step for number in range(first, last + 1)]
    if panel.unit != "ms":
        ticks = [value for value in ticks if value >= 0 and abs(value - round(value)) < 1e-6]
    return step, ticks


def scale_of(panel: Panel, most: float) -> tuple[float, str]:
    """Returns the factor of the unit that suits values up to `most`, and its name."""
    if panel.unit == "ms":
        return next((scale, unit) for least, scale, unit in MS_SCALES if most >= least)
    scale, letter = next(((size, letter) for size, letter in SCALES if panel.unit and most >= size), (1.0, ""))
    return scale, f"{letter}B" if letter and panel.unit == "bytes" else f"{letter}{panel.unit}"


def value_ticks(panel: Panel, axis: Range) -> tuple[list[float], list[str], str]:
    """Returns the values and texts of the ticks of a panel, and the unit that its head names."""
    if panel.log:
        return log_ticks(axis)
    step, ticks = round_values(panel, axis)
    scale, unit = scale_of(panel, max(map(abs, ticks), default=0.0))
    integers = all(abs(value / scale - round(value / scale)) < 1e-9 for value in ticks)
    places = 0 if integers else min(9, max(0, -floor(log10(step / scale) + 1e-9)))
    texts = [f"{value / scale:.{places}f}" if panel.unit else f"{round(value):,}" for value in ticks]
    return ticks, texts, unit
