# SPDX-License-Identifier: Apache-2.0
"""The report of `wiretale compare`: answers, figures and tables of several capture points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.compare.answers import answers
from wiretale.analyzer.compare.loss_location import PLACES
from wiretale.analyzer.compare.packet_tables import losses_by_time, lost_packets
from wiretale.analyzer.units import show_share
from wiretale.reports.html import offline_page
from wiretale.reports.html.compare.figures import delays_over_time, distribution, losses_over_time, sankey
from wiretale.reports.phrases import ASSUMPTION, clock_line, delay_row, ledger_notes, ledger_rows, point_duration

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Comparison

DIAGRAMS_MOST = 8
LOST_MOST = 500
FLOWS_MOST = 50


def first_time(comparison: Comparison) -> int:
    """Returns the time of the first packet at the first point with times."""
    times = [point.first_ns for point in comparison.points if point.first_ns is not None]
    return times[0] if times else 0


def diagrams(comparison: Comparison) -> list[int]:
    """Returns the numbers of ledgers with losses or missed packets, which get a diagram; else that of the first."""
    lossy = [
        n for n, ledger in enumerate(comparison.ledgers) if ledger.lost or any(stage.missed for stage in ledger.stages)
    ]
    drawn: dict[tuple[Any, ...], int] = {}  # blocks are packets, too: the same stages are drawn once
    for n in lossy:
        ledger = comparison.ledgers[n]
        drawn.setdefault((*((stage.name, stage.had, stage.missed) for stage in ledger.stages), *ledger.lost.items()), n)
    return list(drawn.values())[:DIAGRAMS_MOST] or [n for n, ledger in enumerate(comparison.ledgers[:1]) if ledger.sent]


def figures(comparison: Comparison) -> dict[str, Any]:
    """Returns all figures by the id of their element."""
    base_ns = first_time(comparison)
    made = {f"sankey{n}": sankey(comparison.ledgers[n]) for n in diagrams(comparison)}
    if comparison.delays:
        made["delays"] = delays_over_time(comparison.delays, base_ns)
        made["distribution"] = distribution(comparison.delays)
    lost = losses_by_time(comparison)
    if lost:
        made["losses"] = losses_over_time(lost, base_ns)
    return made


def lost_rows(comparison: Comparison) -> tuple[list[dict[str, Any]], int]:
    """Returns the first lost packets, and the number of all."""
    lost, total = lost_packets(comparison, LOST_MOST)
    rows = []
    for row in lost:
        unit = "" if row["position"] is None else f"byte {row['position']:,}"
        if row["run"] is not None:
            unit = f"run {row['run']}, stream {row['stream']}, block {row['sequence']:,}"
        frame = row.get(f"{row['last_seen']}_frame")
        rows.append({**row, "where": PLACES[row["lost"]], "unit": unit, "frame": frame})
    return rows, total


def flow_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Returns the largest flows, one direction per row."""
    rows = []
    for flow in comparison.flows[:FLOWS_MOST]:
        ends = flow["ends0"] or flow.get("ends1") or flow.get("ends2")
        if not ends:
            continue
        a, b = f"{ends[1]}:{ends[2]}", f"{ends[3]}:{ends[4]}"
        lost = flow["before_tracer"] + flow["after_tracer"] + flow["network"]
        way = f"{a} → {b}" if flow["direction"] == 0 else f"{b} → {a}"
        rows.append({**flow, "way": way, "lost": lost, "share": show_share(lost, flow["packets"])})
    return rows


def names_of(roles: list[str]) -> str:
    """Returns the heading of a page without an answer."""
    return f"{', '.join(roles[:-1]).capitalize()} and {roles[-1]} compared"


def render(comparison: Comparison) -> str:
    """Returns the page."""
    roles = [point.role for point in comparison.points]
    lost, total = lost_rows(comparison)
    sentences = list(answers(comparison))
    return offline_page.render(
        "compare.html",
        {"figures": figures(comparison)},
        style=offline_page.part("compare.css"),
        title=" · ".join(f"{point.role} {point.name}" for point in comparison.points),
        heading=sentences[0][:1].upper() + sentences[0][1:] if sentences else names_of(roles),
        answers=sentences[1:],
        points=comparison.points,
        files=[", ".join(Path(str(file)).name for file in point.files) for point in comparison.points],
        lasts=[point_duration(point) for point in comparison.points],
        ledgers=[(ledger, ledger_rows(ledger), ledger_notes(ledger)) for ledger in comparison.ledgers],
        diagrams=diagrams(comparison),
        clocks=[clock_line(clock, roles) for clock in comparison.clocks],
        assumption=ASSUMPTION if any(clock.evidence == "both" for clock in comparison.clocks) else "",
        delays=[delay_row(delay) for delay in comparison.delays],
        flows=flow_rows(comparison),
        lost=lost,
        lost_total=total,
        notes=comparison.notes,
    )


def write_report(comparison: Comparison, path: Path) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(comparison), path)
