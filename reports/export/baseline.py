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


def standing_entry(standing: Standing) -> dict[str, Any]:
    """Returns a measure of the new run among the runs of the baseline."""
    return {
        "measure": standing.measure.name,
        "service": standing.service,
        "unit": standing.measure.unit.name,
        "b": standing.value,
        "runs": len(standing.baseline_values),
        "median": standing.quantile(0.5),
        "p5": standing.quantile(0.05),
        "p95": standing.quantile(0.95),
        "least": standing.quantile(0.0),
        "greatest": standing.quantile(1.0),
        "change": standing.change.difference,
        "change_percent": finite(standing.change.percent),
        "score": standing.scores[-1] if standing.scores else None,
        "p_alone": standing.p_alone,
        "p": standing.p,
        "verdict": standing.verdict,
    }


def baseline_object(
    difference: AgainstBaseline, conditions: Sequence[Condition], failed: bool, version: str
) -> dict[str, Any]:
    """Returns the object that `wiretale diff --store --json` prints."""
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "store": difference.store,
        "runs": difference.runs,
        "runs_needed": RUNS_LEAST,
        "left_out": difference.left_out,
        "level": LEVEL,
        "b": run_entry(difference.after),
        "verdict": difference.verdict,
        "sentence": difference.sentence(),
        "unusual": [standing_entry(entry) for entry in difference.unusual],
        "measures": [standing_entry(entry) for entry in difference.standings],
        "findings": [{**entry._asdict(), "runs": count} for entry, count in difference.findings],
        "services_new": difference.services_new,
        "services_gone": difference.services_gone,
        "conditions": [condition_entry(condition, difference) for condition in conditions],
        "failed": failed,
    }
