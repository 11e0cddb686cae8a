# SPDX-License-Identifier: Apache-2.0
"""wiretale lab run: runs a study, one of its rows, or a plan of experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.units import one_of
from wiretale.traffic.experiment.plan import BUILT_IN
from wiretale.traffic.lab.output import check_run_folders
from wiretale.traffic.lab.profile import Profile, load_profile, profile_names, study_profiles
from wiretale.traffic.lab.study import run_row, write_json
from wiretale.version import __version__

STUDIES = {"s6": "S6"}
PLAN_PROFILE = "same-switch"  # default for plans by name, because most of the studies' tests used one switch
Note = Callable[[str], None]


def with_seed(profile: Profile, seed: int | None) -> Profile:
    """Returns the profile, with another seed if one was given."""
    return profile if seed is None else replace(profile, seed=seed)


def run_study(name: str, folder: Path, seed: int | None, note: Note) -> dict[str, Any]:
    """Runs all rows of a study in order and writes their report."""
    from wiretale.reports.html.lab import write_lab_report

    rows, measures = [], []
    for profile in study_profiles(STUDIES[name]):
        note(f"{profile.name}: {profile.description}")
        row, measured = run_row(with_seed(profile, seed), folder / profile.name, note)
        rows.append(row)
        measures.append(measured)
    results = {"schema": "wiretale.lab/1", "wiretale": __version__, "study": STUDIES[name], "rows": rows}
    write_json(folder / "results.json", results)
    note(f"wrote {write_lab_report(f'Study {STUDIES[name]}, run again', rows, measures, folder / 'report.html')}")
    return results


def run_single(profile: Profile, folder: Path, note: Note) -> dict[str, Any]:
    """Runs one row and writes its report."""
    from wiretale.reports.html.lab import write_lab_report

    row, measured = run_row(profile, folder, note)
    note(f"wrote {write_lab_report(profile.description or profile.name, [row], [measured], folder / 'report.html')}")
    return row


def run_lab(
    what: str, folder: Path, profile: str | None, seed: int | None, note: Note, overwrite: bool = False
) -> dict[str, Any]:
    """Runs the named study, row or plan and returns its results for JSON. Refuses existing captures unless `overwrite`."""
    runs = [row.name for row in study_profiles(STUDIES[what])] if what in STUDIES and profile is None else ["."]
    check_run_folders(folder, runs, [what, *([profile] if profile else [])], overwrite)
    if profile is not None or what in BUILT_IN:
        from wiretale.traffic.lab.plan import run_plan

        return run_plan(what, with_seed(load_profile(profile or PLAN_PROFILE), seed), folder, note, overwrite)
    if what in STUDIES:
        return run_study(what, folder, seed, note)
    if what not in profile_names() and not what.endswith(".toml"):
        names = [*STUDIES, *(name for name in profile_names() if load_profile(name).scenario)]
        raise UsageError(
            f"there is no scenario or plan {what!r} (expected {one_of([*names, *BUILT_IN])}); "
            "for a plan of your own: wiretale lab run FILE.toml --profile PROFILE"
        )
    chosen = with_seed(load_profile(what), seed)
    if not chosen.scenario:
        raise UsageError(
            f"{what}: expected a profile with a scenario; for a plan over it: wiretale lab run PLAN --profile {what}"
        )
    return run_single(chosen, folder, note)
