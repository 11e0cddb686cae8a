# SPDX-License-Identifier: Apache-2.0
"""`wiretale diff --json`: two runs in one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.diff.fail_condition import any_failed

if TYPE_CHECKING:
    from wiretale.analyzer.diff.difference import Change, Difference, FindingChange, FlowPair, TimeChange
    from wiretale.analyzer.diff.fail_condition import Compared, Condition
    from wiretale.analyzer.diff.run import Run

SCHEMA = "wiretale.diff/2"
LARGEST = 5


def finite(value: float | None) -> float | None:
    """Returns null for an infinite value, such as a change from 0 in percent, because JSON has none."""
    return None if value is None or isinf(value) else value


def run_entry(run: Run) -> dict[str, Any]:
    """Returns one of the runs."""
    return {"path": run.path, "kind": run.kind, "damaged": run.damaged, "answer": run.answer or None}


def change_entry(change: Change) -> dict[str, Any]:
    """Returns a measure of both runs."""
    return {
        "measure": change.measure.name,
        "unit": change.measure.unit.name,
        "a": change.before,
        "b": change.after,
        "change": change.difference,
        "change_percent": finite(change.percent),
        "verdict": change.verdict,
    }


def time_entry(change: TimeChange) -> dict[str, Any]:
    """Returns a part of the time, summed over all flows of each run."""
    seconds = {"a_seconds": change.before / 1e9, "b_seconds": change.after / 1e9}
    return {"part": change.name, **seconds, "change_seconds": (change.after - change.before) / 1e9}


def finding_entry(change: FindingChange) -> dict[str, Any]:
    """Returns the findings of a code with their cost in each run."""
    counts = {"a_count": len(change.before), "b_count": len(change.after)}
    costs = {"a_cost": change.cost(change.before), "b_cost": change.cost(change.after), "change": change.change}
    first = (change.after or change.before)[0]
    return {"code": change.code, **counts, **costs, "cost_unit": change.unit, "sentence": first.sentence}


def flow_entry(pair: FlowPair) -> dict[str, Any]:
    """Returns a pair of flows."""
    return {
        "a": pair.before.label if pair.before else None,
        "b": pair.after.label if pair.after else None,
        "matched_by": pair.evidence,
        "measures": [change_entry(change) for change in pair.changes],
    }


def condition_entry(condition: Condition, difference: Compared) -> dict[str, Any]:
    """Returns a threshold and whether it holds."""
    return {
        "condition": condition.text,
        "value": finite(condition.value(difference)),
        "unit": condition.unit,
        "holds": condition.holds(difference),
    }


def diff_object(difference: Difference, conditions: Sequence[Condition], flows: int, version: str) -> dict[str, Any]:
    """Returns the object that `wiretale diff --json` prints, with at most `flows` flows."""
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "a": run_entry(difference.before),
        "b": run_entry(difference.after),
        "verdict": difference.verdict,
        "sentence": difference.sentence(),
        "times": [time_entry(item) for item in difference.times],
        "findings": [finding_entry(item) for item in difference.findings],
        "changed_most": [change.measure.name for change in difference.most_changed(LARGEST)],
        "measures": [change_entry(change) for change in difference.changes],
        "flows": [flow_entry(pair) for pair in difference.flows[:flows]],
        "flows_total": len(difference.flows),
        "findings_appeared": [item._asdict() for item in difference.appeared],
        "findings_gone": [item._asdict() for item in difference.gone],
        "conditions": [condition_entry(condition, difference) for condition in conditions],
        "failed": any_failed(conditions, difference),
    }
