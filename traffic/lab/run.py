# SPDX-License-Identifier: Apache-2.0
"""wiretale lab run: a study, one of its scenarios, or a plan of experiments over the link of a lab."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import OutputError, UsageError, WiretaleError
from wiretale.analyzer.units import one_of
from wiretale.reports.export.destination import check_folder
from wiretale.traffic.experiment.plan import BUILT_IN, plan_text, read_plan
from wiretale.traffic.experiment.store import write_json
from wiretale.traffic.lab.capture import POINTS, capture_drops, captures
from wiretale.traffic.lab.hosts import ADDRESSES
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import lab_summary, make_folder, write_truths
from wiretale.traffic.lab.process import dying_with_us
from wiretale.traffic.lab.profile import Profile, load_profile, profile_names, study_profiles
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.lab.study import run_row
from wiretale.traffic.lab.topology.cross import check_cross, check_senders, cross_results, cross_traffic
from wiretale.version import __version__

PLAN_SCHEMA = "wiretale.lab-plan/1"
STUDIES = {"s6": "S6"}
PLAN_PROFILE = "same-switch"  # the default link of a plan, because most tests of the studies used one switch
LAB_FILES = ("truth.bin", "truth.parquet", "link.out", "link.log")
RUN_FILES = (*LAB_FILES, *(f"capture-{point}.{kind}" for point in POINTS for kind in ("out", "log")), "result.json")
REPORT_FILES = ("report.html", "results.json")
CAPTURES = ("*.pcap", "*.pcapng")
FAILED = 3  # exit code of `wiretale experiment`: done, but a test failed
Note = Callable[[str], None]


def old_captures(folder: Path) -> list[str]:
    """Returns the captures that a run in this directory would remove."""
    paths = (path for point in POINTS for kind in CAPTURES for path in (folder / point).glob(kind) if path.is_file())
    return [str(path.relative_to(folder)) for path in paths]


def check_lab_folder(folder: Path, inputs: Iterable[str], overwrite: bool) -> None:
    """Checks the output of `lab up`. Raises as check_folder()."""
    check_folder(folder, LAB_FILES, inputs, overwrite)


def check_run_folders(folder: Path, runs: Iterable[str], inputs: Iterable[str], overwrite: bool) -> None:
    """Checks the output of `lab run`, with the directories of its runs in `folder`. Raises as check_folder()."""
    inputs = list(inputs)
    check_folder(folder, REPORT_FILES, inputs, overwrite)
    for run in runs:
        place = folder / run
        check_folder(place, [*RUN_FILES, *old_captures(place)], inputs, overwrite)


def experiment_command(
    plan: str, lab: Lab, folder: Path, overwrite: bool, changes: Sequence[str] = (), address: str = ""
) -> list[str]:
    """Returns `wiretale experiment run` with its endpoints in the lab, and options that change the plan. An `address` that the
    receiver does not have there is replaced."""
    ends = [word for host in ADDRESSES for word in (f"--{host}", f"netns:{lab.namespace(host)}")]
    run = [sys.executable, "-P", "-m", "wiretale", "experiment", "run", plan]
    tracer = ["--tracer", f"netns:{lab.namespace(lab.last_tracer)}", "--interface", "right"]
    output = ["-o", str(folder), *(["--overwrite"] if overwrite else [])]
    host = address if address in ADDRESSES["receiver"] else ADDRESSES["receiver"][0]
    return dying_with_us([*run, *ends, *tracer, "--host", host, *output, *changes])


def run_plan(
    plan: str, profile: Profile, folder: Path, note: Note, overwrite: bool, changes: Sequence[str] = ()
) -> dict[str, Any]:
    """Runs a built-in plan or a file, with results in DIR/experiment; captures, truth and result.json are in DIR."""
    address = read_plan(*plan_text(plan)).address  # UsageError before anything is made
    check_cross(profile)
    make_folder(folder)
    cross = partial(cross_traffic, profile=profile, folder=folder)
    with lab_for_run(profile, folder) as lab, captures(lab, folder) as places, cross(lab) as codes:
        note(f"running {plan} over {profile.name}")
        command = experiment_command(plan, lab, folder / "experiment", overwrite, changes, address)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=lab.environment())
    if done.returncode not in (0, FAILED):
        raise WiretaleError(f"wiretale experiment run {plan}: ended with code {done.returncode}")
    truth = write_truths(lab, folder)
    link = lab_summary(lab, folder)
    result = {
        "schema": PLAN_SCHEMA,
        "wiretale": __version__,
        "profile": profile.name,
        "plan": plan,
        "complete": done.returncode == 0,
        "experiment": str(folder / "experiment"),
        "before": str(places["before"]),
        "after": str(places["after"]),
        "truth": str(truth),
        "capture_drops": capture_drops(folder),
        "link": link["directions"],
        "links": link["links"],
        "fidelity": link["fidelity"],
        "cross": cross_results(profile, folder, codes),
    }
    write_json(folder / "result.json", result)
    return result


def with_seed(profile: Profile, seed: int | None) -> Profile:
    """Returns a profile; `seed` replaces its own."""
    return profile if seed is None else replace(profile, seed=seed)


def run_study(name: str, folder: Path, seed: int | None, note: Note) -> dict[str, Any]:
    """Runs all scenarios of a study and writes their report."""
    from wiretale.reports.html.experiment.lab import write_lab_report

    rows, bins = [], []
    for profile in study_profiles(STUDIES[name]):
        note(f"{profile.name}: {profile.description}")
        row, measured = run_row(with_seed(profile, seed), folder / profile.name, note)
        rows.append(row)
        bins.append(measured.bins)
    results = {"schema": "wiretale.lab/1", "wiretale": __version__, "study": STUDIES[name], "rows": rows}
    write_json(folder / "results.json", results)
    note(f"wrote {write_lab_report(f'Study {STUDIES[name]}, run again', rows, bins, folder / 'report.html')}")
    return results


def run_single(profile: Profile, folder: Path, note: Note) -> dict[str, Any]:
    """Runs one scenario and writes its report."""
    from wiretale.reports.html.experiment.lab import write_lab_report

    row, measured = run_row(profile, folder, note)
    note(
        f"wrote {write_lab_report(profile.description or profile.name, [row], [measured.bins], folder / 'report.html')}"
    )
    return row


def remove_other_results(folder: Path, results: dict[str, Any]) -> None:
    """Removes the results that an earlier run of another kind left; `results` are those of this run."""
    names_of_run = ["results.json" if "rows" in results else "result.json"]
    names_of_run += ["report.html"] if results["schema"] != PLAN_SCHEMA else []
    try:
        for name in {*REPORT_FILES, "result.json"}.difference(names_of_run):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot remove: {error.strerror}") from None


def run_kind(
    scenario: str,
    folder: Path,
    profile: str | None,
    seed: int | None,
    note: Note,
    overwrite: bool,
    changes: Sequence[str],
) -> dict[str, Any]:
    """Runs a study, a scenario or a plan, by its name."""
    if profile is not None or scenario in BUILT_IN:
        link = with_seed(load_profile(profile or PLAN_PROFILE), seed)
        return run_plan(scenario, link, folder, note, overwrite, changes)
    if changes:
        raise UsageError(f"{changes[0]}: expected a plan, and {scenario} is none")
    if scenario in STUDIES:
        return run_study(scenario, folder, seed, note)
    if scenario not in profile_names() and not scenario.endswith(".toml"):
        names = [*STUDIES, *(name for name in profile_names() if load_profile(name).scenario)]
        raise UsageError(
            f"there is no scenario or plan {scenario!r} (expected {one_of([*names, *BUILT_IN])}); "
            "for a plan of your own: wiretale lab run FILE.toml --profile PROFILE"
        )
    single = with_seed(load_profile(scenario), seed)
    if not single.scenario:
        raise UsageError(
            f"{scenario}: expected a profile with a scenario; for a plan over it: wiretale lab run PLAN --profile {scenario}"
        )
    return run_single(single, folder, note)


def run_lab(
    scenario: str,
    folder: Path,
    profile: str | None,
    seed: int | None,
    note: Note,
    overwrite: bool = False,
    changes: Sequence[str] = (),
) -> dict[str, Any]:
    """Runs a study, a scenario or a plan; returns the results for JSON. `changes` are options of `wiretale experiment run`.

    Captures of an earlier run in `folder` are only replaced if `overwrite`. WiretaleError if a sender of cross traffic failed;
    the results are written then.
    """
    runs = [row.name for row in study_profiles(STUDIES[scenario])] if scenario in STUDIES and profile is None else ["."]
    check_run_folders(folder, runs, [scenario, *([profile] if profile else [])], overwrite)
    results = run_kind(scenario, folder, profile, seed, note, overwrite, changes)
    if overwrite:
        remove_other_results(folder, results)
    check_senders(results.get("cross", []))
    return results
