# SPDX-License-Identifier: Apache-2.0
"""What a flow's figure has beside the points of series: where the time went, as a lane, and the times of its causes, as bands."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.findings.transfers import PARTS
from wiretale.reports.figures.styles import COLORS, PART_COLORS
from wiretale.reports.html.finding_rows import finding_rows
from wiretale.reports.html.first_screen import cause_flows
from wiretale.reports.html.packing import base_time
from wiretale.reports.html.time_bands import BANDS

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.trace import Trace

SHARE_LEAST = 0.005  # of the time, for which the legend names a part
WHOLE = 0.95  # of the flow: a cause of so much of it needs no band
CAUSES_MOST = 3
LEGEND_LETTERS = 28  # of a line
# Spans that are narrower than a column of pixels are one for each part and column.
SPANS = """
SELECT part, min(start_ns) - {base_ns}, max(end_ns) - {base_ns}, sum(end_ns - start_ns) FROM flow_spans
GROUP BY part, CASE WHEN end_ns - start_ns < {column_ns} THEN start_ns // {column_ns} ELSE -start_ns END ORDER BY 2
"""


@dataclass(frozen=True)
class Lane:
    """The spans of one part of the time: seconds, and their share of all."""

    part: str
    spans: list[tuple[float, float]]
    share: float


@dataclass(frozen=True)
class Evidence:
    """The time of a cause in seconds, its number in the answer, and its title."""

    number: int
    title: str
    start: float
    end: float


def lanes_of(connection: duckdb.DuckDBPyConnection, base_ns: int, column_ns: int) -> list[Lane]:
    """Returns where the time of the flow of `flow_spans` went, the part that took most first."""
    rows = connection.execute(SPANS.format(base_ns=base_ns, column_ns=max(1, column_ns))).fetchall()
    sums, spans = dict[str, int](), dict[str, list[tuple[float, float]]]()
    for part, start, end, lasted in rows:
        spans.setdefault(part, []).append((start / 1e9, end / 1e9))
        sums[part] = sums.get(part, 0) + lasted
    total = sum(sums.values()) or 1
    return [Lane(part, spans[part], sums[part] / total) for part in sorted(sums, key=lambda part: -sums[part])]


def lane_trace(lane: Lane, axes: dict[str, str]) -> dict[str, Any]:
    """Returns the spans of a part as one trace of Plotly."""
    style = BANDS[lane.part]
    low, high = (0.0, 0.5) if style.endswith(" low") else (0.5, 1.0) if style.endswith(" high") else (0.0, 1.0)
    x = [value for start, end in lane.spans for value in (start, end, end, start, start, None)]
    y = [value for _ in lane.spans for value in (low, low, high, high, low, None)]
    return {
        **{"type": "scatter", "mode": "lines", "meta": "parts", "name": f"{PARTS[lane.part]} {lane.share:.0%}"},
        **{"x": x, "y": y, "fill": "toself", "fillcolor": COLORS[PART_COLORS[style.split()[0]]]},
        **{"line": {"width": 0}, "hoverinfo": "name", "showlegend": lane.share >= SHARE_LEAST, **axes},
    }


def evidence_of(trace: Trace, flow: int) -> list[Evidence]:
    """Returns the times of causes that the page lists of a flow, if they are a part of it, and of findings without a cause."""
    begin_ns, end_ns, base_ns = trace.flows[flow]["first_ns"], trace.flows[flow]["last_ns"], base_time(trace)
    if begin_ns is None or end_ns is None:
        return []
    begin, end, evidence = (begin_ns - base_ns) / 1e9, (end_ns - base_ns) / 1e9, []
    for number, listed in enumerate(cause_flows(trace, finding_rows(trace, base_ns, False)), start=1):
        if flow not in listed["flows"] or listed["from"] is None:
            continue
        first, last = max(begin, listed["from"]), min(end, max(listed["from"], listed["to"] or 0.0))
        if first <= last < first + WHOLE * (end - begin):
            evidence.append(Evidence(number, listed["title"], first, last))
    return evidence[:CAUSES_MOST]


def evidence_traces(evidence: list[Evidence], axes: dict[str, str]) -> list[dict[str, Any]]:
    """Returns an entry of the legend for each cause."""
    mark = {
        "symbol": "square",
        "size": 11,
        "color": COLORS["evidence"],
        "line": {"width": 1, "color": COLORS["network"]},
    }
    names = ("<br>".join(wrap(f"{cause.number} {cause.title}", LEGEND_LETTERS)) for cause in evidence)
    common = {
        "type": "scatter",
        "mode": "markers",
        "meta": "evidence",
        "x": [None],
        "y": [None],
        "marker": mark,
        **axes,
    }
    return [{**common, "name": name, "showlegend": True} for name in names]


def evidence_shapes(evidence: list[Evidence], least: float) -> list[dict[str, Any]]:
    """Returns a pale band over all panels for each cause, at least so many seconds wide."""
    shapes = []
    for cause in evidence:
        wider = max(0.0, least - (cause.end - cause.start)) / 2
        shapes.append(
            {
                **{
                    "type": "rect",
                    "name": "evidence",
                    "xref": "x",
                    "yref": "paper",
                    "x0": cause.start - wider,
                    "x1": cause.end + wider,
                },
                **{"y0": 0, "y1": 1, "fillcolor": COLORS["evidence"], "line": {"width": 0}, "layer": "below"},
            }
        )
    return shapes
