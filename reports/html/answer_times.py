# SPDX-License-Identifier: Apache-2.0
"""The chart of a capture that has only ARP, neighbor discovery or pings: each request, and how long its answer took."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.units import plural, show_duration
from wiretale.reports.html.timeline import span_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wiretale.analyzer.rows import ExchangeRow
    from wiretale.analyzer.trace import Trace

KINDS = {"arp": "ARP request", "nd": "neighbor solicitation", "icmp_echo": "ping"}
JUDGED = {"tcp", "udp", "sctp"}  # protocols whose captures have other charts
REQUESTS_LEAST = 2
WIDTH, HEIGHT = 1000, 100  # units of the drawing, which is stretched to its place
FAR_APART = 100  # ratio of times from which the scale is logarithmic
TICKS_MOST = 5
STEPS = (1, 2, 5, 10)
MINUTE, HOUR, CLOCK_STEP_LEAST = 60, 3600, 10  # s
TIME_STEPS = (
    15,
    30,
    *(MINUTE * count for count in (1, 2, 5, 10, 20, 30)),
    *(HOUR * count for count in (1, 2, 3, 6, 12)),
)


def round_step(most: float) -> float:
    """Returns the least of 1, 2 and 5 times a power of ten that is not below a value."""
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in STEPS if step * power >= most * (1 - 1e-9))


class AnswerScale:
    """Maps times in ns to heights from the top: from zero, or by their logarithm if they are far apart."""

    def __init__(self, waits: Iterable[int]) -> None:
        times = [max(wait, 1) for wait in waits] or [1]
        low, high = min(times), max(times)
        self.is_log = high > FAR_APART * low
        if self.is_log:
            first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
            every = math.ceil((last - first) / TICKS_MOST)
            self.ticks = [10.0**power for power in range(first, last + 1, every)]
            self.ends = math.log10(self.ticks[0]), float(last)
        else:
            step = round_step(high / (TICKS_MOST - 2))
            self.ticks = [step * number for number in range(math.ceil(high / step) + 1)]
            self.ends = 0.0, self.ticks[-1]

    def __call__(self, wait: float) -> float:
        """Returns the height in units of the drawing."""
        value = math.log10(max(wait, 1)) if self.is_log else wait
        return HEIGHT * (1 - (value - self.ends[0]) / (self.ends[1] - self.ends[0]))


def drawn_columns(rows: Iterable[ExchangeRow], span: tuple[int, int]) -> tuple[dict[int, set[int]], set[int]]:
    """Returns the times of the answers in each column, the least and the greatest, and the columns with a request without one."""
    columns: dict[int, set[int]] = {}
    unanswered: set[int] = set()
    for row in rows:
        asked_ns = row["asked_ns"] or span[0]
        column = round(WIDTH * (asked_ns - span[0]) / max(span[1] - span[0], 1))
        if row["answered_ns"] is None:
            unanswered.add(column)
        else:
            times = {*columns.get(column, ()), row["answered_ns"] - asked_ns}
            columns[column] = {min(times), max(times)}
    return columns, unanswered


def dots(columns: dict[int, set[int]], scale: AnswerScale) -> str:
    """Returns the answers as the path of points."""
    return "".join(f"M{x} {scale(wait):.1f}h0" for x, waits in sorted(columns.items()) for wait in sorted(waits))


def time_step(least: float) -> float:
    """Returns the step of an axis of time as the timeline has it (timeStep() of page/capture/chart.js)."""
    steps = (step for step in TIME_STEPS if step >= least) if least > CLOCK_STEP_LEAST else iter(())
    return next(steps, None) or round_step(least)


def clock_str(seconds: int) -> str:
    """Returns `1:30`, or `2:46:40` from an hour on."""
    hours, minutes = divmod(seconds // MINUTE, MINUTE)
    return f"{hours}:{minutes:02}:{seconds % MINUTE:02}" if hours else f"{minutes}:{seconds % MINUTE:02}"


def moments(lasted: float) -> list[tuple[str, str]]:
    """Returns place, in percent, and text of the ticks of the seconds of a capture."""
    if not lasted:
        return []
    step = time_step(lasted / TICKS_MOST)
    is_clock = step >= CLOCK_STEP_LEAST and lasted >= MINUTE
    times = (step * number for number in range(math.floor(lasted / step) + 1))
    return [
        (f"{100 * time / lasted:.1f}", clock_str(round(time)) if is_clock and time else f"{time:g}") for time in times
    ]


def answer_times(trace: Trace) -> dict[str, Any] | None:
    """Returns the chart; None if the capture has other traffic to judge, or too few requests."""
    span = span_of(trace)
    if span is None or JUDGED & set(trace.flows["protocol"]):
        return None
    # Requests that were still open at the end of the capture are neither answered nor not.
    rows = [row for row in trace.exchanges if row["kind"] in KINDS and row["outcome"] != "cut_off"]
    if len(rows) < REQUESTS_LEAST:
        return None
    columns, unanswered = drawn_columns(rows, span)
    scale = AnswerScale(wait for waits in columns.values() for wait in waits)
    counts = Counter(row["kind"] for row in rows)
    return {
        "requests": ", ".join(plural(count, KINDS[kind]) for kind, count in counts.items()),
        "dots": dots(columns, scale),
        "misses": "".join(f"M{x} 0V10" for x in sorted(unanswered)),
        "unanswered": sum(row["answered_ns"] is None for row in rows),
        "times": [(f"{scale(tick):.1f}", show_duration(tick) if tick else "0") for tick in scale.ticks],
        "moments": moments((span[1] - span[0]) / 1e9),
        "logarithmic": scale.is_log,
    }
