# SPDX-License-Identifier: Apache-2.0
"""A plan of experiments between the ends of a lab, captured before and after the link."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.experiment.plan import plan_text, read_plan
from wiretale.traffic.lab.capture import capture_drops, captures
from wiretale.traffic.lab.hosts import ADDRESSES
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import link_summary, make_folder, write_truth
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.program import dying_with_us
from wiretale.traffic.lab.state import Lab
from wiretale.version import __version__

FAILED = 3  # exit code of `wiretale experiment` if a test of the plan failed


def experiment_command(plan: str, lab: Lab, folder: Path, overwrite: bool) -> list[str]:
    """Returns the command `wiretale experiment run` with its ends in the lab."""
    ends = [word for host in ADDRESSES for word in (f"--{host}", f"netns:{lab.namespace(host)}")]
    run = [sys.executable, "-P", "-m", "wiretale", "experiment", "run", plan]
    tracer = ["--tracer", f"netns:{lab.namespace('tracer')}", "--interface", "right"]
    output = ["-o", str(folder), *(["--overwrite"] if overwrite else [])]
    return dying_with_us([*run, *ends, *tracer, "--host", ADDRESSES["receiver"][0], *output])


def run_plan(plan: str, profile: Profile, folder: Path, note: Callable[[str], None], overwrite: bool) -> dict[str, Any]:
    """Runs a plan by name or file; results go to DIR/experiment, captures and truth beside it."""
    read_plan(*plan_text(plan))  # an invalid plan must fail before anything is made
    make_folder(folder)
    with lab_for_run(profile, folder) as lab, captures(lab, folder) as places:
        note(f"running {plan} over {profile.name}")
        command = experiment_command(plan, lab, folder / "experiment", overwrite)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=lab.environment())
    if done.returncode not in (0, FAILED):
        raise WiretaleError(f"wiretale experiment run {plan}: ended with code {done.returncode}")
    truth = write_truth(folder, folder / "truth.parquet")
    return {
        "schema": "wiretale.lab-plan/1",
        "wiretale": __version__,
        "profile": profile.name,
        "plan": plan,
        "complete": done.returncode == 0,
        "experiment": str(folder / "experiment"),
        "before": str(places["before"]),
        "after": str(places["after"]),
        "truth": str(truth),
        "capture_drops": capture_drops(folder),
        "link": link_summary(folder)["directions"],
    }
