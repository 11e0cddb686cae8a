# SPDX-License-Identifier: Apache-2.0
"""The report of `wiretale diff`: the verdict, the changes, and both runs over one time axis, each from its own start."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.diff.courses import ALL, bin_width, can_read_samples, courses, has_courses
from wiretale.analyzer.units import plural, show_count, show_duration
from wiretale.reports import changes
from wiretale.reports.html import offline_page
from wiretale.reports.html.compare.packet_links import CaptureReport, report_of
from wiretale.reports.html.figures import SEVERAL, axis_key, panel_axes, plot, scatter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wiretale.analyzer.diff.courses import Course, Courses
    from wiretale.analyzer.diff.difference import Change, Difference, FindingChange, FlowPair
    from wiretale.analyzer.diff.run import Run

PAIRS_MOST = 20  # flows of both runs, the most changed first
# Name, values of a course, title and hover of each panel.
PANELS = (
    ("rate", "throughput", "throughput, bit/s", "%{text} of IP"),
    ("sequence", "position", "payload so far, bytes", "%{y:,.0f} bytes of unique payload"),
    ("rtt", "rtt", "RTT, ms", "RTT %{y:.3f} ms"),
    ("losses", "lost", "lost so far", "%{y:,} lost"),
)
RUNS = (("A", SEVERAL[0], "solid", "circle"), ("B", SEVERAL[1], "dash", "diamond-open"))
DIGITS = 6  # of rates and shares in the page


def overlay_figure() -> dict[str, Any]:
    """Returns the figure of both runs without points, and its panels."""
    traces = []
    for name, color, dash, symbol in RUNS:
        for number, (panel, _, _, hover) in enumerate(PANELS, start=1):
            shape = "hv" if panel in ("rate", "losses") else "linear"
            look = {"mode": "lines", "line": {"color": color, "dash": dash, "width": 1.6, "shape": shape}}
            if panel == "rtt":
                look |= {"mode": "lines+markers", "marker": {"color": color, "size": 5, "symbol": symbol}}
            legend = {"legendgroup": name, "showlegend": number == 1, "meta": name, "connectgaps": False}
            traces.append(
                scatter(name, [], [], f"{name} at %{{x:.4g}} s<br>{hover}", yaxis=axis_key(number), **legend, **look)
            )
    axes: dict[int, dict[str, Any]] = {
        number: {"title": {"text": title}} for number, (_, _, title, _) in enumerate(PANELS, start=1)
    }
    figure = plot(
        traces,
        margin={"l": 76, "r": 16, "t": 8, "b": 44},
        dragmode="zoom",
        xaxis={
            "title": {"text": "seconds since the first packet of each run"},
            "zeroline": False,
            "anchor": "free",
            "position": 0,
        },
        **panel_axes(axes),
    )
    units = [title.partition(", ")[2] for _, _, title, _ in PANELS]
    panels = [
        {"name": panel[0], "axis": n, "unit": unit}
        for n, (panel, unit) in enumerate(zip(PANELS, units, strict=True), 1)
    ]
    return {"plot": figure, "panels": panels}


def distribution_figure(title: str) -> dict[str, Any]:
    """Returns a figure of cumulative distributions of both runs without points."""
    traces = []
    for name, color, dash, _ in RUNS:
        line = {"color": color, "dash": dash, "width": 1.8}
        hover = f"{name}: %{{y:.1f}}% within %{{x:.3f}} ms"
        traces.append(scatter(name, [], [], hover, mode="lines", line=line, meta=name))
    return plot(
        traces,
        height=320,
        margin={"l": 56, "r": 16, "t": 8, "b": 44},
        showlegend=True,
        xaxis={"title": {"text": title}, "zeroline": False},
        yaxis={"title": {"text": "share at or below, %"}, "range": [0, 102], "zeroline": False},
    )


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Returns values with few digits, which keeps the page small."""
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in values]


def course_data(course: Course) -> dict[str, Any]:
    """Returns a course for the scripts of the page; counts of bytes and losses stay exact."""
    return {
        "x": [round(x, 6) for x in course.x],
        "throughput": rounded(course.throughput),
        "position": [round(value) for value in course.position],
        "rtt": rounded(course.rtt),
        "lost": [round(value) for value in course.lost],
        "rtt_shares": rounded(course.rtt_shares),
        "rtt_samples": course.rtt_samples,
        "delay_shares": rounded(course.delay_shares),
        "delay_samples": course.delay_samples,
    }


def pair_label(pair: FlowPair) -> str:
    """Returns the name of a pair: that of both flows if their ends differ, and how they were matched."""
    before, after = (part.label if part else "" for part in (pair.before, pair.after))
    name = before if before == after else f"{before} | {after}"
    return f"{name} ({changes.MATCHED[pair.evidence]})" if pair.evidence in changes.MATCHED else name


def matched(difference: Difference) -> list[tuple[str, int, int]]:
    """Returns the label and both flows of each pair, the most changed first."""
    return [
        (pair_label(pair), pair.before.flow, pair.after.flow)
        for pair in difference.flows
        if pair.before and pair.after and pair.before.flow is not None and pair.after.flow is not None
    ]


def overlay(difference: Difference) -> tuple[list[dict[str, Any]], list[Courses]]:
    """Returns the runs together and each pair of flows for the scripts, and the courses; nothing without packets."""
    runs = (difference.before, difference.after)
    if not all(map(has_courses, runs)):
        return [], []
    pairs = matched(difference)[:PAIRS_MOST]
    width, exact = bin_width(runs), all(map(can_read_samples, runs))
    flows = [before for _, before, _ in pairs], [after for _, _, after in pairs]
    pair_courses = [courses(run, flow, width, exact) for run, flow in zip(runs, flows, strict=True)]
    entries = [
        {
            "label": label,
            "flows": None if a == ALL else {"A": a, "B": b},
            "A": course_data(pair_courses[0].by_flow[a]),
            "B": course_data(pair_courses[1].by_flow[b]),
        }
        for label, a, b in [("all flows", ALL, ALL), *pairs]
    ]
    return entries, pair_courses


def reports_of(difference: Difference) -> dict[str, CaptureReport]:
    """Returns the reports of the runs that are one capture each, by A and B; none if both would have the same."""
    runs = (("A", difference.before), ("B", difference.after))
    made = {name: report_of(run.trace._arguments) for name, run in runs if run.trace is not None}
    reports = {name: report for name, report in made.items() if report}
    return reports if len({report.name for report in reports.values()}) == len(reports) else {}


def finding_links(change: FindingChange, difference: Difference, reports: dict[str, CaptureReport]) -> list[list[str]]:
    """Returns the runs with the first finding of a change, and its address in their reports."""
    links = []
    for name, run, found in (("A", difference.before, change.before), ("B", difference.after, change.after)):
        if found and name in reports and run.trace is not None:
            numbers = (row["finding"] for row in run.trace.findings if row["code"] == change.code)
            links += [[name, reports[name].link(finding=number)] for number in islice(numbers, 1)]
    return links


def pairs_note(difference: Difference) -> str:
    """Returns which flows can be chosen, if not all."""
    pairs = len(matched(difference))
    alone = sum(not (pair.before and pair.after) for pair in difference.flows)
    parts = [f"the {PAIRS_MOST} most changed of {pairs:,} matched flows"] if pairs > PAIRS_MOST else []
    return "; ".join([*parts, *([f"{plural(alone, 'flow')} in one run only"] if alone else [])])


def overlay_note(difference: Difference, drawn: list[Courses]) -> str:
    """Returns how the panels are made, or the reason why there are none."""
    if not drawn:
        lacking = [name for name, run in (("A", difference.before), ("B", difference.after)) if not has_courses(run)]
        return f"No packets over time are known of {' and '.join(lacking)}, so the runs are not drawn."
    samples = (
        "all samples of the packets"
        if drawn[0].exact
        else "the least sample of each bin of the series table, because a run has no packets to read or too many"
    )
    return (
        f"Bins of {show_duration(drawn[0].width_s * 1e9)}; the series table has wider ones of flows with few packets. A flow is "
        "drawn in the direction with more payload. RTTs are of the direction with more samples, over all flows their median. The "
        f"distribution of RTTs has {samples}."
    )


def run_row(name: str, run: Run) -> dict[str, str]:
    """Returns the facts about a run."""
    values = run.total
    return {
        "name": name,
        "path": Path(run.path).name,
        "kind": run.kind,
        "answer": run.answer,
        "packets": show_count(values.get("packets")),
        "duration": show_duration(values.get("duration")),
        "damaged": "damaged or truncated: results cover its readable part" if run.damaged else "",
    }


def measure_row(change: Change) -> list[str]:
    """Returns the row of a measure."""
    show = change.measure.unit.show
    absolute, relative = changes.change_texts(change)
    return [change.measure.label, show(change.before), show(change.after), absolute, relative, change.word]


def finding_rows(
    difference: Difference, reports: dict[str, CaptureReport]
) -> list[tuple[str, str, str, list[list[str]]]]:
    """Returns severity, text and costs of the findings that changed, and links to them."""
    listed = difference.findings[: changes.FINDINGS_SHOWN]
    return [
        (
            (change.after or change.before)[0].severity if change.after else "gone",
            f"{changes.sign_of(change)} {changes.sentence_of(change)}",
            changes.finding_cost(change).strip(),
            finding_links(change, difference, reports),
        )
        for change in listed
    ]


def render(difference: Difference) -> str:
    """Returns the page."""
    entries, pair_courses = overlay(difference)
    reports = reports_of(difference)
    has_delays = any(entry[run]["delay_samples"] for entry in entries for run in ("A", "B"))
    data = {
        "flows": {"held": len(entries), "count": len(entries)},
        "pairs": entries,
        "figure": overlay_figure(),
        "cdfs": {
            "rtt": distribution_figure("RTT, ms"),
            "delay": distribution_figure("block delay above the least, ms"),
        },
        "width": pair_courses[0].width_s if pair_courses else None,
        "reports": {name: report.link() for name, report in reports.items()},
    }
    return offline_page.render(
        "diff.html",
        data,
        "diff.js",
        style=offline_page.part("diff.css"),
        title=f"{Path(difference.before.path).name} and {Path(difference.after.path).name}",
        heading=difference.sentence().removesuffix(difference.size_note()),
        size_note=difference.size_note().strip(),
        runs=[run_row("A", difference.before), run_row("B", difference.after)],
        times=[changes.time_text(time) for time in difference.times[: changes.TIMES_SHOWN]],
        findings=finding_rows(difference, reports),
        findings_left=max(0, len(difference.findings) - changes.FINDINGS_SHOWN),
        pairs=[entry["label"] for entry in entries],
        pairs_note=pairs_note(difference),
        note=overlay_note(difference, pair_courses),
        has_delays=has_delays,
        reports=list(reports.values()),
        measures=[measure_row(change) for change in difference.changes],
    )


def write_report(difference: Difference, path: Path) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(difference), path)
