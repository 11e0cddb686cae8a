# SPDX-License-Identifier: Apache-2.0
"""A plan of experiments between the ends of a lab, captured before and after its link."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, WiretaleError
from wiretale.traffic.lab import lab_for_run
from wiretale.traffic.lab_capture import capture_drops, captures
from wiretale.traffic.lab_hosts import ADDRESSES
from wiretale.traffic.lab_link import link_summary, make_folder, write_truth
from wiretale.traffic.lab_profile import Profile
from wiretale.traffic.lab_state import Lab
from wiretale.version import __version__


def experiment_command(plan: Path, lab: Lab, folder: Path) -> list[str]:
    """`wiretale experiment run` with its ends in the lab."""
    ends = []
    for host in ("sender", "receiver"):
        address = ADDRESSES[host][0]
        ends += [f"--{host}", f"{{netns = {json.dumps(lab.namespace(host))}, address = {json.dumps(address)}}}"]
    return [sys.executable, "-m", "wiretale", "experiment", "run", str(plan), *ends, "-o", str(folder)]


def run_plan(plan: Path, profile: Profile, folder: Path, note: Callable[[str], None]) -> dict[str, Any]:
    """Runs the plan; its results are in DIR/experiment, captures and truth beside it."""
    if not plan.is_file():
        raise InputError(f"{plan}: no such plan, and no scenario of that name: wiretale lab list")
    make_folder(folder)
    with lab_for_run(profile, folder) as lab, captures(lab, folder) as places:
        note(f"running {plan} over {profile.name}")
        done = subprocess.run(
            experiment_command(plan, lab, folder / "experiment"), stdin=subprocess.DEVNULL, stdout=sys.stderr
        )
    if done.returncode:
        raise WiretaleError(f"wiretale experiment run {plan}: ended with code {done.returncode}")
    truth = write_truth(folder, folder / "truth.parquet")
    return {
        "schema": "wiretale.lab-plan/1",
        "wiretale": __version__,
        "profile": profile.name,
        "plan": str(plan),
        "experiment": str(folder / "experiment"),
        "before": str(places["before"]),
        "after": str(places["after"]),
        "truth": str(truth),
        "capture_drops": capture_drops(folder),
        "link": link_summary(folder)["directions"],
    }
