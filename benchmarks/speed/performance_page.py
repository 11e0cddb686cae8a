# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md and its figure docs/performance.svg from scale.json.

    make bench-scale

The page has no number of its own: its costs are fitted to the measured rows, and its projection is computed from them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from shared.markdown import table
from speed.scale import RESULTS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = Path(__file__).with_name("performance_text.md")
OWN, PARQUET = "wiretale --json", "wiretale -o"
PROGRAMS = {OWN: "#1f5fbf", PARQUET: "#7a3fb0", "tcptrace": "#c0541a", "tshark": "#b8901a", "capinfos": "#6b6b6b"}
DAY_BYTES, DAY = 10e12, 86400.0
WHOLE_PACKET = 816  # bytes in the file: a mean of 800 on the wire, and 16 of the record
RUN_MEMORY_GB = 8
FLOW_SECONDS = 30
HARD_DISK_MB_S = 200

Row = dict[str, Any]
Point = tuple[float, float]


def exponent(points: Sequence[Point]) -> float:
    """Returns the power of x with which y grows between the last two points: 1 is linear, 2 quadratic."""
    (x0, y0), (x1, y1) = points[-2:]
    return math.log(y1 / y0) / math.log(x1 / x0)


class Measured:
    """The rows of scale.json."""

    def __init__(self, results: Row) -> None:
        self.machine: Row = results["machine"]
        self.rows: list[Row] = results["runs"]

    def of(self, axis: str, program: str) -> list[Row]:
        return [row for row in self.rows if (row["axis"], row["program"]) == (axis, program)]

    def points(self, axis: str, program: str, value: str) -> list[Point]:
        """Returns the measured values of a program over an axis."""
        return [(row[axis], row[value]) for row in self.of(axis, program) if row[value] is not None]

    def programs(self, axis: str) -> list[str]:
        return [program for program in PROGRAMS if self.of(axis, program)]

    @property
    def payload_byte(self) -> float:
        """CPU seconds of a byte of payload: two captures differ by it alone."""
        (_, headers), (_, full) = self.points("bytes", OWN, "cpu")
        small, large = (row["bytes"] for row in self.of("bytes", OWN))
        return max((full - headers) / float(large - small), 0.0)


def number(value: float) -> str:
    """Returns a number with three significant digits."""
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def cost(row: Row | None, name: str, peer_seconds: int) -> str:
    if row is None:
        return "not run"
    if row["cpu"] is None:
        return f"over {peer_seconds}" if name == "cpu" else "–"
    return number(row[name])


def axis_table(measured: Measured, axis: str, unit: str) -> str:
    """Returns the CPU seconds and the memory of each program at each point of an axis."""
    programs = measured.programs(axis)
    places = sorted({row[unit] for row in measured.rows if row["axis"] == axis})
    limit = measured.machine["peer_seconds"]

    def cells(place: int) -> Iterator[str]:
        rows = {row["program"]: row for row in measured.rows if row["axis"] == axis and row[unit] == place}
        yield f"{place:,}"
        for program in programs:
            yield cost(rows.get(program), "cpu", limit)
        for program in programs:
            yield cost(rows.get(program), "memory", limit)

    heads = [unit, *(f"{name}, s" for name in programs), *(f"{name}, MB" for name in programs)]
    return table(" | ".join(heads), [list(cells(place)) for place in places], left=0)


def growth_table(measured: Measured) -> str:
    """Returns how costs grow along each axis: the marginal cost at both ends, and the exponent at the large end."""

    def rows() -> Iterator[Sequence[str]]:
        for axis in ("packets", "flows"):
            for program in measured.programs(axis):
                for value, unit, scale in (("cpu", "µs", 1e6), ("memory", "kB", 1e3)):
                    points = measured.points(axis, program, value)
                    if len(points) > 2 and not (value == "memory" and axis != "flows"):
                        each = [(y1 - y0) / (x1 - x0) * scale for (x0, y0), (x1, y1) in pairwise(points)]
                        name = "CPU" if value == "cpu" else "memory"
                        marginal = [f"{number(cost)} {unit}" for cost in (each[0], each[-1])]
                        yield f"{name} by {axis}", program, *marginal, f"{exponent(points):.2f}"

    return table("cost | program | each more, small end | each more, large end | exponent, large end", rows(), left=2)


def jobs_table(measured: Measured) -> str:
    rows = measured.of("jobs", OWN)
    if not rows:
        return (
            "This version has no `--jobs`: the reader and the flows have a thread each, which is in the figures above."
        )
    cells = [(row["jobs"], number(row["cpu"]), number(row["wall"]), number(row["memory"])) for row in rows]
    return table("jobs | CPU, s | wall, s | memory, MB", cells, left=0)


def projection(measured: Measured) -> str:
    """Returns the table of a day of 10 TB, of whole packets and of headers, from the runs on the axis of ended flows."""
    first, *_, last = measured.of("ended", PARQUET)
    disk, packets, flows = measured.machine["disk_mb_s"], first["packets"], first["flows"]
    headers, ended = first["bytes"] / packets, last["flows"] - flows
    flow_memory, flow_output = ((last[name] - first[name]) * 1e6 / ended for name in ("memory", "output"))
    open_memory = first["memory"] * 1e6 / flows

    def column(size: float) -> Iterator[str]:
        """Yields the cells of a day whose packets have this size in the file."""
        a_day = DAY_BYTES / size
        flows_a_day = a_day / (packets / flows)
        cores = a_day * first["cpu"] / packets / DAY
        open_flows = flows_a_day / DAY * FLOW_SECONDS
        flows_a_run = (RUN_MEMORY_GB * 1e9 - open_flows * open_memory) / flow_memory + open_flows
        payload = (size - headers) * a_day * measured.payload_byte / DAY
        yield number(size)
        yield f"{number(DAY_BYTES / DAY / 1e6)} ({DAY_BYTES / DAY / 1e6 / disk:.1%} of the measured {disk:,})"
        yield f"{DAY_BYTES / DAY / 1e6 / HARD_DISK_MB_S:.0%}"
        yield number(a_day / DAY)
        yield number(flows_a_day / DAY)
        yield number(cores)
        yield number(payload) if payload or size == headers else "too little to measure"
        yield f"**{number(cores + payload)}**"
        yield f"{number(open_memory / 1e3)} kB, {number(flow_memory / 1e3)} kB"
        yield number(open_flows)
        yield number(flows_a_run)
        yield f"{math.ceil(flows_a_day / flows_a_run):,}"
        yield number(flows_a_day * flow_output / 1e9)
        yield f"{flows_a_day * flow_output / DAY_BYTES:.2%}"

    names = (
        "bytes of a packet in the file",
        "disk: reading, MB/s",
        f"disk: the same of a hard disk with {HARD_DISK_MB_S} MB/s",
        "packets/s",
        "flows/s",
        "CPU: cores for packets and flows",
        "CPU: cores for payload",
        "**CPU: cores in all**",
        "memory: of an open flow with its share of the program, of an ended one",
        f"memory: open flows, if each lasts {FLOW_SECONDS} s",
        f"memory: flows in a run of {RUN_MEMORY_GB} GB",
        "memory: runs a day, at least",
        "output: Parquet and reports, GB a day",
        "output: share of the captures",
    )
    return table(
        "10 TB a day | whole packets | headers", zip(names, column(WHOLE_PACKET), column(headers), strict=True)
    )


def figure(measured: Measured) -> Any:
    """Returns the figure: CPU time along each axis, and memory over flows."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    panels = [("packets", "cpu"), ("flows", "cpu"), ("flows", "memory"), ("files", "cpu")]
    titles = [f"CPU by {axis}, s" if value == "cpu" else f"memory by {axis}, MB" for axis, value in panels]
    drawn = make_subplots(rows=2, cols=2, subplot_titles=titles, vertical_spacing=0.14)
    for place, (axis, value) in enumerate(panels):
        for program in measured.programs(axis):
            points = measured.points(axis, program, value)
            trace = go.Scatter(
                x=[x for x, _ in points],
                y=[y for _, y in points],
                name=program,
                showlegend=program not in {other.name for other in drawn.data},
                mode="lines+markers",
                line={"color": PROGRAMS[program]},
            )
            drawn.add_trace(trace, row=place // 2 + 1, col=place % 2 + 1)
        places = sorted({row[axis] for row in measured.rows if row["axis"] == axis})
        drawn.update_xaxes(
            row=place // 2 + 1, col=place % 2 + 1, tickvals=places, ticktext=[f"{at:,}" for at in places]
        )
    drawn.update_xaxes(type="log", gridcolor="#e4e4e4", linecolor="#888")
    drawn.update_yaxes(type="log", dtick="D2", gridcolor="#e4e4e4", linecolor="#888", exponentformat="none")
    drawn.update_layout(
        template="plotly_white",
        width=960,
        height=720,
        margin={"l": 60, "r": 20, "t": 70, "b": 40},
        legend={"orientation": "h", "y": 1.1, "x": 0.5, "xanchor": "center"},
    )
    return drawn


def page(results: Row) -> str:
    """Returns the text of docs/performance.md."""
    measured = Measured(results)
    in_one, *_, in_most = measured.of("files", OWN)
    mixed = measured.of("ended", PARQUET)[0]
    facts = {
        **measured.machine,
        "absent": ", ".join(measured.machine["absent"]) or "none",
        "packets_table": axis_table(measured, "packets", "packets"),
        "flows_table": axis_table(measured, "flows", "flows"),
        "bytes_table": axis_table(measured, "bytes", "bytes"),
        "files_table": axis_table(measured, "files", "files"),
        "file_cost": number((in_most["cpu"] - in_one["cpu"]) / (in_most["files"] - in_one["files"]) * 1e3),
        "jobs_table": jobs_table(measured),
        "growth_table": growth_table(measured),
        "ended_table": axis_table(measured, "ended", "flows"),
        "projection": projection(measured),
        "run_memory": RUN_MEMORY_GB,
        "flow_seconds": FLOW_SECONDS,
        "mixed_packets": f"{mixed['packets']:,}",
        "mixed_flows": f"{mixed['flows']:,}",
        "flow_packets": mixed["packets"] // mixed["flows"],
    }
    text = TEXT.read_text("utf-8")
    return re.sub("@([a-z_]+)@", lambda match: str(facts[match[1]]), text)


def main() -> None:
    results = json.loads(RESULTS.read_text("utf-8"))
    figure(Measured(results)).write_image(DOCS / "performance.svg")
    (DOCS / "performance.md").write_text(page(results), "utf-8")


if __name__ == "__main__":
    main()
