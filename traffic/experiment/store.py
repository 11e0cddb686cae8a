# SPDX-License-Identifier: Apache-2.0
"""The folder of an experiment: its plan, and the raw JSON and captures of each finished test."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, OutputError, UsageError
from wiretale.reports.export.destination import check_folder, output_file
from wiretale.traffic.experiment.commands import CAPTURES
from wiretale.traffic.experiment.plan import Plan
from wiretale.version import __version__

PLAN_SCHEMA, TEST_SCHEMA = "wiretale.experiment/1", "wiretale.experiment-test/1"
PLAN_FILE, RAW, RESULTS, LOCK = "experiment.json", "raw", "results.csv", ".lock"
NAMED_MOST = 3


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Writes a file atomically."""
    with output_file(path) as out:
        out.write(json.dumps(data, indent=1, allow_nan=False).encode() + b"\n")


def read_json(path: Path, schema: str) -> dict[str, Any]:
    """Reads a file of an experiment. Raises InputError if it is not one."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != schema:
        raise InputError(f"{path}: expected {schema}")
    return data


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Returns the differences of two plans as text."""
    tests = [{test["name"]: test for test in plan["tests"]} for plan in (before, now)]
    found = [key for key in now if key != "tests" and before.get(key) != now[key]]
    found += [f"{name} is new" for name in tests[1] if name not in tests[0]]
    found += [f"{name} is gone" for name in tests[0] if name not in tests[1]]
    found += [name for name in tests[0] if name in tests[1] and tests[0][name] != tests[1][name]]
    left = len(found) - NAMED_MOST
    return [*found[:NAMED_MOST], *([f"{left} more"] if left > 0 else [])]


class Store:
    """Files are written atomically, test by test, so that an interrupted run can continue."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.raw = folder / RAW

    def files(self) -> list[Path]:
        """Returns the experiment's existing files."""
        beside = (self.folder / name for name in (PLAN_FILE, RESULTS))
        found = [*beside, *self.raw.glob("*"), *(self.folder / CAPTURES).glob("*")]
        return [path for path in found if path.is_file()]

    def check(self, inputs: Iterable[str], overwrite: bool) -> None:
        """Refuses to replace an input, or a capture unless it is this experiment's own or `overwrite` is set."""
        inputs, begun = list(inputs), (self.folder / PLAN_FILE).exists()
        for path in [self.folder / RESULTS, *self.files()]:
            own = begun and path.parent.name == CAPTURES
            check_folder(self.folder, [str(path.relative_to(self.folder))], inputs, overwrite or own)

    def begin(self, plan: Plan) -> None:
        """Creates the folder for the plan. Raises UsageError if it belongs to another plan."""
        now = json.loads(json.dumps(plan.as_dict()))
        path = self.folder / PLAN_FILE
        try:
            self.raw.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot create the output folder: {error.strerror}") from None
        if not path.exists():
            write_json(path, {"schema": PLAN_SCHEMA, "wiretale": __version__, "digest": plan.digest(), "plan": now})
            return
        before = read_json(path, PLAN_SCHEMA).get("plan", {})
        if before != now:
            raise UsageError(
                f"{self.folder} holds results of another plan ({', '.join(changes(before, now))} changed since): "
                "use another folder, or the plan and the options it was begun with"
            )

    def clean(self) -> None:
        """Removes partial files of a killed run."""
        for left in [*self.folder.glob("*/.*partial-*"), *self.folder.glob(".*partial-*")]:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the folder against a second run. Raises UsageError if another run holds the lock."""
        with (self.folder / LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"{self.folder}: in use by another run") from None
            yield
        with suppress(OSError):
            (self.folder / LOCK).unlink()

    def plan(self) -> dict[str, Any]:
        """Returns the plan of the results. Raises InputError if the folder is not an experiment's."""
        path = self.folder / PLAN_FILE
        if not path.exists():
            raise InputError(f"{self.folder}: expected a folder that `wiretale experiment run` wrote, with {PLAN_FILE}")
        plan: dict[str, Any] = read_json(path, PLAN_SCHEMA)["plan"]
        return plan

    def keep(self, test: str, data: dict[str, Any]) -> None:
        """Returns the results of a test."""
        write_json(self.raw / f"{test}.json", {"schema": TEST_SCHEMA, "wiretale": __version__, **data})

    def is_done(self, test: str) -> bool:
        """Returns whether the test has a result; a failed test has none."""
        path = self.raw / f"{test}.json"
        return path.exists() and read_json(path, TEST_SCHEMA)["error"] is None

    def tests(self) -> Iterator[dict[str, Any]]:
        """Returns all results in the plan's order."""
        for test in self.plan()["tests"]:
            path = self.raw / f"{test['name']}.json"
            if path.exists():
                yield read_json(path, TEST_SCHEMA)
