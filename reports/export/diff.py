# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side as one JSON object: `wiretale diff --json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isinf
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretale.analyzer.diff.difference import Change, Difference, FlowPair
    from wiretale.analyzer.diff.fail_condition import Condition
    from wiretale.analyzer.diff.run import Run

SCHEMA = "wiretale.diff/1"
MOST = 5


def run_entry(run: Run) -> dict[str, Any]:
    """One of both."""
    return {"path": run.path, "kind": run.kind, "damaged": run.damaged}


def change_entry(change: Change) -> dict[str, Any]:
    """A measure. The change in percent is null where the first run has 0."""
    percent = change.percent
    return {
        "measure": change.measure.name,
        "unit": change.measure.unit.name,
        "a": change.before,
        "b": change.after,
        "change": change.difference,
        "change_percent": None if percent is None or isinf(percent) else percent,
        "verdict": change.verdict,
    }


def flow_entry(pair: FlowPair) -> dict[str, Any]:
    """A pair of flows."""
    return {
        "a": pair.before.label if pair.before else None,
        "b": pair.after.label if pair.after else None,
        "matched_by": pair.evidence,
        "measures": [change_entry(change) for change in pair.changes],
    }


def condition_entry(condition: Condition, difference: Difference) -> dict[str, Any]:
    """A threshold, and whether it holds."""
    value = condition.value(difference)
    return {
        "condition": condition.text,
        "value": None if value is None or isinf(value) else value,
        "unit": "%" if condition.relative else condition.measure.unit.name,
        "holds": condition.holds(difference),
    }


def finding_entry(finding: tuple[str, str, str]) -> dict[str, str]:
    """A finding."""
    return dict(zip(("code", "severity", "sentence"), finding, strict=True))


def write_json(difference: Difference, conditions: Sequence[Condition], flows: int, version: str, out: IO[str]) -> None:
    """One object in one line."""
    whole = {
        "schema": SCHEMA,
        "wiretale": version,
        "a": run_entry(difference.before),
        "b": run_entry(difference.after),
        "changed_most": [change.measure.name for change in difference.most_changed(MOST)],
        "measures": [change_entry(change) for change in difference.changes],
        "flows": [flow_entry(pair) for pair in difference.flows[:flows]],
        "flows_total": len(difference.flows),
        "findings_appeared": [finding_entry(one) for one in difference.appeared],
        "findings_gone": [finding_entry(one) for one in difference.gone],
        "conditions": [condition_entry(condition, difference) for condition in conditions],
        "failed": any(condition.holds(difference) for condition in conditions),
    }
    out.write(json.dumps(whole, allow_nan=False) + "\n")
