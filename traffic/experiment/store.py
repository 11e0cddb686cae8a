# SPDX-License-Identifier: Apache-2.0
"""The directory of an experiment: its plan, and raw JSON and capture of each completed test."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, OutputError, UsageError
from wiretale.reports.export.destination import check_folder, output_file
from wiretale.traffic.experiment.commands import CAPTURES
from wiretale.traffic.experiment.plan import Plan
from wiretale.version import __version__

PLAN_SCHEMA, TEST_SCHEMA = "wiretale.experiment/1", "wiretale.experiment-test/1"
HOSTS_SCHEMA = "wiretale.experiment-hosts/1"
PLAN_FILE, RAW, RESULTS, LOCK = "experiment.json", "raw", "results.csv", ".lock"
SUMMARIES, LATENCIES, HOSTS = "summary.csv", "latency.csv", "hosts.json"
NAMED_MOST = 3


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Writes a file that appears whole or not at all."""
    with output_file(path) as out:
        out.write(json.dumps(data, indent=2, allow_nan=False).encode() + b"\n")


def read_json(path: Path, schema: str) -> dict[str, Any]:
    """Reads a file that write_json() wrote. InputError if it has another schema."""
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
    """Returns the differences of two plans, the first of them by name."""
    tests = [{test["name"]: test for test in plan["tests"]} for plan in (before, now)]
    differing = [key for key in now if key != "tests" and before.get(key) != now[key]]
    differing += [f"{name} is new" for name in tests[1] if name not in tests[0]]
    differing += [f"{name} is gone" for name in tests[0] if name not in tests[1]]
    differing += [name for name in tests[0] if name in tests[1] and tests[0][name] != tests[1][name]]
    left = len(differing) - NAMED_MOST
    return [*differing[:NAMED_MOST], *([f"{left} more"] if left > 0 else [])]


class Store:
    """Writes complete files after each test, so that an interrupted run can be resumed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.raw = folder / RAW

    def files(self) -> list[Path]:
        """Returns the existing files of the experiment."""
        beside = (self.folder / name for name in (PLAN_FILE, RESULTS, SUMMARIES, LATENCIES, HOSTS))
        paths = [*beside, *self.raw.glob("*"), *(self.folder / CAPTURES).glob("*")]
        return [path for path in paths if path.is_file()]

    def check(self, inputs: Iterable[str], overwrite: bool) -> None:
        """Raises UsageError if an input would be replaced, or a capture that is not of this experiment and not `overwrite`."""
        inputs, begun = list(inputs), (self.folder / PLAN_FILE).exists()
        for path in [self.folder / RESULTS, *self.files()]:
            is_own_capture = begun and path.parent.name == CAPTURES
            check_folder(self.folder, [str(path.relative_to(self.folder))], inputs, overwrite or is_own_capture)

    def begin(self, plan: Plan) -> None:
        """Makes the directory of a plan. UsageError if it has results of another plan."""
        now = json.loads(json.dumps(asdict(plan)))
        path = self.folder / PLAN_FILE
        try:
            self.raw.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot create the output directory: {error.strerror}") from None
        if not path.exists():
            write_json(path, {"schema": PLAN_SCHEMA, "wiretale": __version__, "digest": plan.digest(), "plan": now})
            return
        before = read_json(path, PLAN_SCHEMA).get("plan", {})
        if before != now:
            raise UsageError(
                f"{self.folder} holds results of another plan ({', '.join(changes(before, now))} changed since): "
                "use another directory, or the plan and options of those results"
            )

    def hosts(self) -> list[dict[str, Any]]:
        """Returns the facts about the hosts, of each run in which they had changed: `since_ns`, `sender`, `receiver`."""
        path = self.folder / HOSTS
        runs: list[dict[str, Any]] = read_json(path, HOSTS_SCHEMA)["runs"] if path.exists() else []
        return runs

    def keep_hosts(self, facts: dict[str, Any], now_ns: int) -> None:
        """Adds the facts of a run, unless they are those of the run before."""
        runs = self.hosts()
        if not runs or {name: runs[-1].get(name) for name in facts} != facts:
            runs.append({"since_ns": now_ns, **facts})
            write_json(self.folder / HOSTS, {"schema": HOSTS_SCHEMA, "wiretale": __version__, "runs": runs})

    def clean(self) -> None:
        """Removes partial files of a run that was killed."""
        for left in [*self.folder.glob("*/.*partial-*"), *self.folder.glob(".*partial-*")]:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the directory for one run. UsageError if another run has it."""
        with (self.folder / LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"{self.folder}: in use by another run") from None
            yield
        with suppress(OSError):
            (self.folder / LOCK).unlink()

    def plan(self) -> dict[str, Any]:
        """Returns the plan. InputError if the directory has none."""
        path = self.folder / PLAN_FILE
        if not path.exists():
            raise InputError(
                f"{self.folder}: expected a directory that `wiretale experiment run` wrote, with {PLAN_FILE}"
            )
        plan: dict[str, Any] = read_json(path, PLAN_SCHEMA)["plan"]
        return plan

    def keep(self, test: str, data: dict[str, Any]) -> None:
        """Writes the result of a test."""
        write_json(self.raw / f"{test}.json", {"schema": TEST_SCHEMA, "wiretale": __version__, **data})

    def test(self, name: str) -> dict[str, Any]:
        """Returns the result of a completed test."""
        return read_json(self.raw / f"{name}.json", TEST_SCHEMA)

    def is_done(self, test: str) -> bool:
        """Returns whether a test was completed; one that failed must run again."""
        return (self.raw / f"{test}.json").exists() and self.test(test)["error"] is None

    def tests(self) -> Iterator[dict[str, Any]]:
        """Yields the results of all tests, in the order of the plan."""
        for test in self.plan()["tests"]:
            if (self.raw / f"{test['name']}.json").exists():
                yield self.test(test["name"])
