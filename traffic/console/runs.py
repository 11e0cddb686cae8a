# SPDX-License-Identifier: Apache-2.0
"""The runs of a folder: one at a time runs, and those that ended stay."""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from wiretale.analyzer.errors import InputError, OutputError, UsageError
from wiretale.reports.export.destination import check_folder
from wiretale.reports.html.experiment.data import Outcome
from wiretale.reports.html.experiment.figures import experiment_figures
from wiretale.traffic.console.form import FORM_PLAN, Form, check, command, own_plan
from wiretale.traffic.experiment.published import of_network
from wiretale.traffic.experiment.results import outcome_without_captures, read_outcome
from wiretale.traffic.experiment.store import PLAN_FILE, Store
from wiretale.traffic.lab.process import dying_with_us
from wiretale.traffic.lab.run import FAILED

Row = dict[str, Any]
RUNS_MOST = 200  # that are listed, the newest
BESIDE_MOST = 8  # runs that are compared with one
STOP_S = 10.0
SAID_MOST = 4096  # bytes of a log that are read


@dataclass
class Running:
    """A run that was started."""

    name: str
    process: subprocess.Popen[bytes]
    started: float
    stopped: bool = False


class Runs:
    """The folder of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = Lock()
        self.last: Running | None = None

    # --- what there is

    def stores(self) -> dict[str, Store]:
        """Returns the runs by name, the newest first. A run over a lab has its results in a folder of its own."""
        stores = {}
        for path in sorted(self.folder.iterdir(), reverse=True)[:RUNS_MOST]:
            for place in (path, path / "experiment"):
                if (place / PLAN_FILE).is_file():
                    stores[path.name] = Store(place)
        return stores

    def store(self, name: str) -> Store:
        """Returns a run. UsageError if there is none of this name."""
        stores = self.stores()
        if name not in stores:
            raise UsageError(f"run {name!r}: there is none in {self.folder}")
        return stores[name]

    def listed(self) -> list[Row]:
        """Returns name, title and progress of each run."""
        runs = []
        for name, store in self.stores().items():
            with suppress(InputError):
                plan = store.plan()
                done = sum(1 for _ in store.raw.glob("[!.]*.json"))
                runs.append({"name": name, "title": plan["title"], "done": done, "total": len(plan["tests"])})
        return runs

    def state(self) -> Row:
        """Returns the run that runs or ended last, and all runs."""
        runs = self.listed()
        with self.lock:
            last = self.last
        if last is None:
            return {"run": None, "runs": runs}
        code = last.process.poll()
        place = next((run for run in runs if run["name"] == last.name), None)
        done, total = (place["done"], place["total"]) if place else (0, None)
        seconds = time.monotonic() - last.started
        left = seconds / done * (total - done) if total and 0 < done < total and code is None else None
        run = {
            "name": last.name,
            "done": done,
            "total": total,
            "running": code is None,
            "stopped": last.stopped,
            "left_s": left,
        }
        return {
            "run": {**run, "error": self.last_line(last.name) if code not in (None, 0, FAILED) else None},
            "runs": runs,
        }

    def last_line(self, name: str) -> str:
        """Returns the last line that a run said."""
        with suppress(OSError):
            text = (self.folder / name / "log").read_bytes()[-SAID_MOST:].decode("utf-8", "replace")
            return text.strip().rpartition("\n")[2]
        return "ended without a word"

    def figures(self, name: str, beside: list[str], network: str = "") -> Row:
        """Returns the figures of a run so far, with the lines of other runs and the published ones of a network beside its own,
        and its tests that failed; none before the first test."""
        if len(beside) > BESIDE_MOST:
            raise UsageError(f"{len(beside)} runs beside one: expected at most {BESIDE_MOST}")
        outcome = self.outcome(name)
        if outcome and network:
            study = network.partition(" ")[0]
            outcome = replace(outcome, plan={**outcome.plan, "study": study}, published=of_network(network))
        figures = experiment_figures(outcome) if outcome else []
        for another in beside:
            if another != name and (further := self.outcome(another)):
                add_lines(figures, another, experiment_figures(further))
        return {"run": name, "figures": figures, "failures": outcome.failures if outcome else []}

    def outcome(self, name: str) -> Outcome | None:
        """Returns plan and results of a run without its captures; None before the first test."""
        store = self.store(name)
        tests = list(store.tests())
        return outcome_without_captures(store, tests) if tests else None

    def report(self, name: str) -> str:
        """Returns the report of a run."""
        from wiretale.reports.html.experiment.page import render

        return render(read_outcome(self.store(name).folder))

    # --- what a person does

    def start(self, form: Form) -> Row:
        """Starts a run, and returns its name as `run`. UsageError if one runs."""
        check(form)
        with self.lock:
            if self.last and self.last.process.poll() is None:
                raise UsageError(f"{self.last.name} runs: stop it first, or wait for its end")
            name = f"{time.strftime('%Y-%m-%d_%H%M%S')}_{form.plan}" + (f"_{form.profile}" if form.profile else "")
            place = self.folder / name
            try:
                place.mkdir(exist_ok=False)
                if form.plan == FORM_PLAN:
                    (place / "plan.toml").write_text(own_plan(form), "utf-8")
                with (place / "log").open("wb") as log:
                    process = subprocess.Popen(
                        dying_with_us(command(form, place)),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,  # Ctrl-C of the terminal ends this program, which stops the run
                    )
            except FileExistsError:
                raise UsageError(f"{name} was started in this second: wait for the next") from None
            except OSError as error:
                raise OutputError(f"{place}: {error.strerror}") from None
            self.last = Running(name, process, time.monotonic())
        return {"run": name}

    def stop(self) -> Row:
        """Stops the run, whose results so far stay."""
        with self.lock:
            last = self.last
        if last and last.process.poll() is None:
            last.stopped = True
            last.process.terminate()
        return {}

    def close(self) -> None:
        """Stops the run and waits for its end, which is forced after STOP_S."""
        self.stop()
        if self.last:
            try:
                self.last.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.last.process.kill()
                self.last.process.wait()


def add_lines(figures: list[Row], name: str, further: list[Row]) -> None:
    """Adds the measured lines of another run to the figures of the same title, with its name."""
    by_title = {figure["title"]: figure for figure in further}
    for figure in figures:
        if beside := by_title.get(figure["title"]):
            figure["data"] += [
                {**trace, "name": f"{trace['name']}, {name}", "opacity": 0.45}
                for trace in beside["data"]
                if trace.get("name") and trace.get("showlegend", True) and "published" not in trace["name"]
            ]
            figure["choices"] = []


def usable(folder: Path) -> Path:
    """Returns a folder for runs, which is made if it is missing. OutputError if that fails, or no run can be written there."""
    check_folder(folder, (), ())
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from None
    return folder
