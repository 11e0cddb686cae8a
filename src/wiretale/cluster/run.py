# SPDX-License-Identifier: Apache-2.0
"""A run on a cluster: the steps whose files are missing, until none is, then gather.

The files in the shared folder alone decide which steps are missing. So an interrupted run continues, and a step whose file
was lost or is damaged runs again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.capture_paths import public_url
from wiretale.analyzer.errors import InputError, MissingToolError, WiretaleError
from wiretale.analyzer.shards.layout import PLAN
from wiretale.analyzer.shards.steps import gather
from wiretale.cluster import steps
from wiretale.cluster.begin import State, tasks_of
from wiretale.cluster.place import Place
from wiretale.cluster.progress import Progress, Step
from wiretale.cluster.steps import Job, Problem, facts_name, packets_name, rows_name, shard_name
from wiretale.cluster.tasks import Failed, Task, run_tasks

if TYPE_CHECKING:
    from distributed import Client

    from wiretale.analyzer.trace import Trace

SPLIT = Step("splitting", "split", "file")
ANALYZE = Step("analyzing", "analyzed", "shard")
GATHER = Step("gathering", "gathered", "shard")
ROUNDS = 4  # after which a folder that loses files is given up


class Run:
    """The steps of a job on a cluster."""

    def __init__(self, client: Client, job: Job, state: State, progress: Progress) -> None:
        self._client, self._job, self._state, self._progress = client, job, state, progress
        self._place = Place(job.work)
        self._files = range(len(job.names))
        self._given_up: set[int] = set()  # captures that stopped their step each time
        self._lost = ""  # the last file of the folder that was missing or damaged

    def trace(self, inexact: bool) -> Trace:
        """Runs the steps and returns the result. InputError if no capture could be read, or if the folder loses files."""
        for _ in range(ROUNDS):
            self._split()
            if not self._analyze():
                continue
            trace = self._gather(inexact)
            if trace:
                return trace
        raise InputError(f"{self._place}: loses files, the last time {self._lost}: expected a folder that keeps them")

    def _run(self, tasks: dict[str, Task]) -> Iterator[tuple[str, Any]]:
        """Yields the results of tasks. Failed is one of a step that failed; any other failure ends the run."""
        for name, result in run_tasks(self._client, tasks, self._progress.workers):
            if isinstance(result, Failed) and isinstance(result.error, WiretaleError):
                raise result.error
            if isinstance(result, Failed) and not isinstance(result.error, steps.StepFault):
                raise MissingToolError(f"{name}: {result.reason}; then the same command continues")
            yield name, result

    def _unsplit(self) -> list[int]:
        """Returns the captures whose shards are not complete."""
        there = self._place.names()
        shards = range(self._job.shards)
        return [
            file
            for file in self._files
            if facts_name(file) not in there or any(packets_name(file, shard) not in there for shard in shards)
        ]

    def _split(self) -> None:
        """Splits the captures that are left; leaves out those that cannot be read."""
        left = self._unsplit()
        if not left:
            return
        with self._progress.step(SPLIT, len(self._files), len(self._files) - len(left)):
            read = [file for file in left if file not in self._state.left_out]
            failed = self._split_groups(tasks_of(read, self._job.sizes))
            alone = [
                file for file in failed if file not in self._given_up
            ]  # because one may have stopped all of its task
            problems = self._split_groups([[file] for file in alone])
            problems |= {file: failed[file] for file in self._given_up & failed.keys()}
            for file, text in sorted(problems.items()):
                self._state.left_out[file] = text
                self._progress.warn(f"left out: {text}")
            if len(self._state.left_out) == len(self._files):
                raise InputError(f"no capture could be read: {next(iter(self._state.left_out.values()))}")
            if problems:
                self._state.save()
            self._leave_out([file for file in left if file in self._state.left_out])

    def _split_groups(self, groups: list[list[int]]) -> dict[int, str]:
        """Splits captures, a task for each group; returns those that could not be read, and why."""
        names = {f"split-{at}": group for at, group in enumerate(groups)}
        tasks = {name: Task(steps.split, (self._job, group)) for name, group in names.items()}
        failures: dict[int, str] = {}
        for name, result in self._run(tasks):
            group = names[name]
            if isinstance(result, Failed):
                names_of = {file: public_url(self._job.names[file]) for file in group}
                problems = [Problem(file, f"{names_of[file]}: {result.reason}", None) for file in group]
                self._given_up.update(group if len(group) == 1 else ())
            else:
                problems = result
            for problem in problems:
                self._drop(problem)
                failures[problem.number] = problem.text
            self._progress.advance(len(group) - len(problems))
        return failures

    def _leave_out(self, files: Iterable[int]) -> None:
        """Splits an empty capture in place of each of these."""
        tasks = {f"leave-out-{file}": Task(steps.leave_out, (self._job, file)) for file in files}
        for _, result in self._run(tasks):
            if isinstance(result, Failed):
                raise InputError(f"{self._place}: {result.reason}")
            self._progress.advance(1)

    def _drop(self, problem: Problem) -> None:
        """Removes a damaged file from the folder, so that the step that makes it runs again."""
        if problem.lost:
            self._lost = problem.text
            self._place.remove(problem.lost)

    def _analyze(self) -> bool:
        """Analyzes the shards that are left; returns whether all have rows."""
        there = self._place.names()
        left = [shard for shard in range(self._job.shards) if rows_name(shard) not in there]
        complete = True
        if not left:
            return True
        with self._progress.step(ANALYZE, self._job.shards, self._job.shards - len(left)):
            tasks = {shard_name(shard): Task(steps.analyze, (self._job, shard)) for shard in left}
            for name, result in self._run(tasks):
                if isinstance(result, Failed):
                    raise InputError(f"{self._place}/{name}: {result.reason}: run the same command again to continue")
                if result:
                    complete = False
                    self._drop(result)
                    self._progress.show(f"again: {result.text}")
                    if not result.lost:
                        raise InputError(result.text)
                else:
                    self._progress.advance(1)
        return complete

    def _gather(self, inexact: bool) -> Trace | None:
        """Returns the result, or None if rows were damaged."""
        with ExitStack() as stack:
            folder = Path(self._place.text)
            stack.enter_context(self._progress.step(GATHER, self._job.shards, 0))
            if self._place.is_url:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wiretale-")))
                for name in (PLAN, *map(facts_name, self._files), *map(rows_name, range(self._job.shards))):
                    self._place.fetch(name, folder / name)
            try:
                trace = gather(folder, inexact)
            except InputError as error:
                problem = steps.problem_of(str(error), folder)
                if not problem.lost:
                    raise
                self._drop(problem)
                return None
        for file in self._state.left_out:
            name = public_url(self._job.names[file])
            trace.inputs.remove(name)
            del trace._stamps[name]
        return trace
