# SPDX-License-Identifier: Apache-2.0
"""`wiretale diff --store --json`: a run and its baseline in one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.diff.baseline import LEVEL, RUNS_LEAST
from wiretale.reports.export.diff import condition_entry, finite, run_entry

if TYPE_CHECKING:
    from wiretale.analyzer.diff.baseline import AgainstBaseline, Standing
    from wiretale.analyzer.diff.fail_condition import Condition

SCHEMA = "wiretale.baseline/1"


def standing_entry(one: Standing) -> dict[str, Any]:
    """Returns a measure of the new run among the runs of the baseline."""
    return {
        "measure": one.measure.name,
        "service": one.service,
        "unit": one.measure.unit.name,
        "b": one.value,
        "runs": len(one.known),
        "median": one.quantile(0.5),
        "p5": one.quantile(0.05),
        "p95": one.quantile(0.95),
        "least": one.quantile(0.0),
        "greatest": one.quantile(1.0),
        "change": one.change.difference,
        "change_percent": finite(one.change.percent),
        "score": one.scores[-1] if one.scores else None,
        "p_alone": one.p_alone,
        "p": one.p,
        "verdict": one.verdict,
    }


def baseline_object(
    found: AgainstBaseline, conditions: Sequence[Condition], failed: bool, version: str
) -> dict[str, Any]:
    """Returns the object that `wiretale diff --store --json` prints."""
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "store": found.store,
        "runs": found.runs,
        "runs_needed": RUNS_LEAST,
        "left_out": found.left_out,
        "level": LEVEL,
        "b": run_entry(found.after),
        "verdict": found.verdict,
        "sentence": found.sentence(),
        "unusual": [standing_entry(one) for one in found.unusual],
        "measures": [standing_entry(one) for one in found.standings],
        "findings": [{**one._asdict(), "runs": count} for one, count in found.findings],
        "services_new": found.services_new,
        "services_gone": found.services_gone,
        "conditions": [condition_entry(condition, found) for condition in conditions],
        "failed": failed,
    }
