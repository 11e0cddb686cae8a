# SPDX-License-Identifier: Apache-2.0
"""All that a report of an experiment is made from, read from its folder."""

from __future__ import annotations

from pathlib import Path

from wiretale.analyzer.errors import InputError
from wiretale.reports.html.experiment_outcome import Outcome
from wiretale.traffic.experiment.published import published
from wiretale.traffic.experiment.results import rows
from wiretale.traffic.experiment.session_series import session_series
from wiretale.traffic.experiment.store import Store


def read_outcome(folder: Path) -> Outcome:
    """What a folder holds. InputError when nothing was run there."""
    store = Store(folder)
    plan, tests = store.plan(), list(store.tests())
    if not tests:
        raise InputError(f"{folder}: expected at least one completed test; `wiretale experiment run` resumes the plan")
    together = [session_series(data, folder) for data in tests if len(data["sessions"]) > 1]
    tracers = [data["tracer"]["program"] for data in tests if data["tracer"]]
    return Outcome(
        folder=folder.name,
        plan=plan,
        rows=list(rows(tests)),
        together=[one for one in together if one],
        published=published(plan["study"]),
        failures=[(data["test"]["name"], data["error"]) for data in tests if data["error"]],
        started_ns=min(data["started_ns"] for data in tests),
        tracer=tracers[0] if tracers else None,
        missing=len(plan["tests"]) - len(tests),
    )
