# SPDX-License-Identifier: Apache-2.0
"""The report of `wiretale compare`: answers, figures and tables of several capture points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.compare.answers import answers, distinct
from wiretale.analyzer.compare.loss_location import PLACES
from wiretale.analyzer.compare.packet_tables import losses_by_time, lost_packets
from wiretale.analyzer.units import UNKNOWN, show_share
from wiretale.reports.html import offline_page
from wiretale.reports.html.compare.figures import delays_over_time, distribution, losses_over_time, sankey
from wiretale.reports.html.compare.packet_links import CaptureReport, report_of
from wiretale.reports.phrases import ASSUMPTION, clock_line, delay_row, ledger_notes, ledger_rows, point_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.compare.comparison import Comparison
    from wiretale.analyzer.compare.loss_location import Ledger

DIAGRAMS_MOST = 8
LOST_MOST = 500
FLOWS_MOST = 50


def first_time(comparison: Comparison) -> int:
    """Returns the time of the first packet at the first point with times."""
    times = [point.first_ns for point in comparison.points if point.first_ns is not None]
    return times[0] if times else 0


def diagrams(ledgers: Sequence[Ledger]) -> list[int]:
    """Returns the numbers of ledgers with losses or missed packets, which get a diagram; else that of the first."""
    lossy = [n for n, ledger in enumerate(ledgers) if ledger.lost or any(stage.missed for stage in ledger.stages)]
    return lossy[:DIAGRAMS_MOST] or [n for n, ledger in enumerate(ledgers[:1]) if ledger.sent]


def figures(comparison: Comparison) -> dict[str, Any]:
    """Returns all figures by the id of their element."""
    base_ns = first_time(comparison)
    ledgers = distinct(comparison.ledgers)
    made = {f"sankey{n}": sankey(ledgers[n]) for n in diagrams(ledgers)}
    if comparison.delays:
        made["delays"] = delays_over_time(comparison.delays, base_ns)
        made["distribution"] = distribution(comparison.delays)
    lost = losses_by_time(comparison)
    if lost:
        made["losses"] = losses_over_time(lost, base_ns)
    return made


def reports_of(comparison: Comparison) -> dict[str, CaptureReport]:
    """Returns the reports of the points by their role; none if two captures would have the same."""
    by_role = {point.role: report_of(point.files) for point in comparison.points}
    reports = {role: report for role, report in by_role.items() if report}
    return reports if len({report.name for report in reports.values()}) == len(reports) else {}


def lost_rows(comparison: Comparison, reports: dict[str, CaptureReport]) -> tuple[list[list[Any]], int]:
    """Returns the rows of the first lost packets, whose frames are links to these reports, and the number of all."""
    lost, total = lost_packets(comparison, LOST_MOST)
    rows = []
    for row in lost:
        unit = "" if row["position"] is None else f"byte {row['position']:,}"
        if row["run"] is not None:
            unit = f"run {row['run']}, stream {row['stream']}, block {row['sequence']:,}"
        frame, report = row.get(f"{row['last_seen']}_frame"), reports.get(row["last_seen"] or "")
        seen = {"text": frame, "href": report.link(frame=frame)} if frame and report else frame or ""
        rows.append([row["way"], row["kind"], unit, row["bytes"], row["last_seen"] or "", seen, PLACES[row["lost"]]])
    return rows, total


def flow_rows(comparison: Comparison) -> list[list[str]]:
    """Returns the rows of the largest flows, one direction each."""
    rows = []
    for flow in comparison.flows[:FLOWS_MOST]:
        ends = flow["ends0"] or flow.get("ends1") or flow.get("ends2")
        if not ends:
            continue
        a, b = f"{ends[1]}:{ends[2]}", f"{ends[3]}:{ends[4]}"
        lost = flow["before_tracer"] + flow["after_tracer"] + flow["network"]
        way = f"{a} → {b}" if flow["direction"] == 0 else f"{b} → {a}"
        counts = (f"{flow['packets']:,}", f"{lost:,}", show_share(lost, flow["packets"]), str(flow["copies"] or ""))
        rows.append([way, *counts])
    return rows


def capture_rows(comparison: Comparison) -> list[list[str]]:
    """Returns the rows of the capture points."""
    return [
        [
            ", ".join(Path(str(file)).name for file in point.files),
            point.role,
            f"{point.packets:,}",
            point_duration(point),
            UNKNOWN if point.dropped is None else f"{point.dropped:,}",
        ]
        for point in comparison.points
    ]


def names_of(roles: list[str]) -> str:
    """Returns the heading of a page without an answer."""
    return f"{', '.join(roles[:-1]).capitalize()} and {roles[-1]} compared"


def render(comparison: Comparison) -> str:
    """Returns the page."""
    roles = [point.role for point in comparison.points]
    reports, ledgers = reports_of(comparison), distinct(comparison.ledgers)
    lost, total = lost_rows(comparison, reports)
    sentences = list(answers(comparison))
    return offline_page.render(
        "compare.html",
        {"figures": figures(comparison)},
        style=offline_page.part("compare.css"),
        title=" · ".join(f"{point.role} {point.name}" for point in comparison.points),
        heading=sentences[0][:1].upper() + sentences[0][1:] if sentences else names_of(roles),
        answers=sentences[1:],
        captures=capture_rows(comparison),
        ledgers=[(ledger, ledger_rows(ledger), ledger_notes(ledger)) for ledger in ledgers],
        diagrams=diagrams(ledgers),
        clocks=[clock_line(clock, roles) for clock in comparison.clocks],
        assumption=ASSUMPTION if any(clock.evidence == "both" for clock in comparison.clocks) else "",
        delays=[delay_row(delay) for delay in comparison.delays],
        flows=flow_rows(comparison),
        lost=lost,
        lost_total=total,
        reports=list(reports.values()),
        notes=comparison.notes,
    )


def write_report(comparison: Comparison, path: Path) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(comparison), path)
