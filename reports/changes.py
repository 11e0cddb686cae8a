# SPDX-License-Identifier: Apache-2.0
"""Texts of `wiretale diff` that the terminal and the page share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretale.analyzer.findings.transfers import LIMITS
from wiretale.analyzer.units import UNKNOWN, show_change, show_duration, with_sign
from wiretale.reports.phrases import cost_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wiretale.analyzer.diff.baseline import AgainstBaseline
    from wiretale.analyzer.diff.difference import Change, FindingChange, LimitChange

LIMITS_SHOWN, FINDINGS_SHOWN, SERVICES_SHOWN = 5, 10, 10
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


def limit_text(one: LimitChange) -> str:
    """`stalled in RTOs: 0.2 s → 1.4 s (+1.2 s)`."""
    difference = with_sign(show_duration, one.after - one.before)
    return f"{LIMITS[one.name]}: {show_duration(one.before)} → {show_duration(one.after)} ({difference})"


def finding_cost(one: FindingChange) -> str:
    """`  1.2 s → 3.4 s`: the costs in both runs; empty if unknown."""
    costs = [
        cost_text({"code": one.code, "cost": one.cost(found), "cost_unit": one.unit})
        for found in (one.before, one.after)
        if found
    ]
    if not all(costs):
        return ""
    layer = costs[-1].partition("B ")[2]  # of bytes; both costs have it
    return f"  {' → '.join([*(cost.removesuffix(f' {layer}') for cost in costs[:-1]), costs[-1]])}"


def finding_text(one: FindingChange) -> str:
    """`+ timeout-stalls  1.2 s: …`: the code, its costs and the first sentence; + appeared, − disappeared, ~ changed."""
    found = one.after or one.before
    sign = "~" if one.before and one.after else "+" if one.after else "−"
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return f"{sign} {one.code}{finding_cost(one)}: {found[0].sentence}{more}"


def baseline_lines(found: AgainstBaseline) -> Iterator[tuple[str, str]]:
    """Yields severity and text of the findings and services of a run that are rare in its baseline, or missing."""
    for one, count in found.findings[:FINDINGS_SHOWN]:
        yield one.severity, f"+ {one.code} ({count:,} of {found.runs:,} runs): {one.sentence}"
    for title, services in (("new services", found.services_new), ("missing services", found.services_gone)):
        if services:
            more = f" and {len(services) - SERVICES_SHOWN:,} more" if len(services) > SERVICES_SHOWN else ""
            yield "", f"{title}: {', '.join(services[:SERVICES_SHOWN])}{more}"
