# SPDX-License-Identifier: Apache-2.0
"""Texts of `wiretale diff` that the terminal and the page share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.findings.transfers import PARTS
from wiretale.analyzer.units import UNKNOWN, show_change, show_duration, with_sign
from wiretale.reports.phrases import cost_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wiretale.analyzer.diff.baseline import AgainstBaseline
    from wiretale.analyzer.diff.difference import Change, FindingChange, TimeChange

TIMES_SHOWN, FINDINGS_SHOWN, SERVICES_SHOWN = 5, 10, 10
MATCHED = {"service": "ports differ", "port": "hosts differ", "protocol": "by rank alone"}


def percent_text(change: Change) -> str:
    """Returns the relative change."""
    percent = change.percent
    if percent is None:
        return UNKNOWN
    return show_change(percent) if change.weight else "="


def difference_text(change: Change) -> str:
    """Returns the absolute change in the unit of the measure."""
    if change.difference is None:
        return UNKNOWN
    if change.measure.unit.name == "%":
        return show_change(change.difference).replace("%", " points")
    return with_sign(change.measure.unit.show, change.difference)


def change_texts(change: Change) -> tuple[str, str]:
    """Returns the absolute and the relative change: `=` if the values are equal, a dash if one is unknown."""
    if change.difference is not None and change.weight:
        return difference_text(change), percent_text(change)
    return UNKNOWN if change.difference is None else "=", ""


def time_text(time: TimeChange) -> str:
    """`stalled in RTOs: 0.2 s → 1.4 s (+1.2 s)`."""
    difference = with_sign(show_duration, time.after - time.before)
    return f"{PARTS[time.name]}: {show_duration(time.before)} → {show_duration(time.after)} ({difference})"


def finding_cost(change: FindingChange) -> str:
    """`  1.2 s → 3.4 s`: the costs in both runs; empty if unknown."""
    costs = [
        cost_text({"code": change.code, "cost": change.cost(findings), "cost_unit": change.unit})
        for findings in (change.before, change.after)
        if findings
    ]
    if not all(costs):
        return ""
    layer = costs[-1].partition("B ")[2]  # of bytes; both costs have it
    return f"  {' → '.join([*(cost.removesuffix(f' {layer}') for cost in costs[:-1]), costs[-1]])}"


def finding_text(change: FindingChange) -> str:
    """`+ timeout-stalls  1.2 s: …`: the code, its costs and the first sentence; + appeared, − disappeared, ~ changed."""
    return f"{sign_of(change)} {change.code}{finding_cost(change)}: {sentence_of(change)}"


def sign_of(change: FindingChange) -> str:
    """Returns the sign of a finding that appeared, disappeared or changed."""
    return "~" if change.before and change.after else "+" if change.after else "−"


def sentence_of(change: FindingChange) -> str:
    """Returns the first sentence of a finding, and how many there are more."""
    findings = change.after or change.before
    more = f" (and {len(findings) - 1:,} more)" if len(findings) > 1 else ""
    return f"{findings[0].sentence}{more}"


def baseline_lines(difference: AgainstBaseline) -> Iterator[tuple[str, str]]:
    """Yields severity and text of the findings and services of a run that are rare in its baseline, or missing."""
    for finding, count in difference.findings[:FINDINGS_SHOWN]:
        yield finding.severity, f"+ {finding.code} ({count:,} of {difference.runs:,} runs): {finding.sentence}"
    for title, services in (("new services", difference.services_new), ("missing services", difference.services_gone)):
        if services:
            more = f" and {len(services) - SERVICES_SHOWN:,} more" if len(services) > SERVICES_SHOWN else ""
            yield "", f"{title}: {', '.join(services[:SERVICES_SHOWN])}{more}"
