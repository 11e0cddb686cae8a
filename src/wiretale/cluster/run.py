# SPDX-License-Identifier: Apache-2.0
"""A run on a cluster: the tasks whose files are missing, until none is, then the join.

The files in the shared folder alone decide which tasks are missing. So an interrupted run continues, and a task whose files
were lost or are damaged runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import InputError, MissingToolError, WiretaleError
from wiretale.cluster.job import FACTS, Job
from wiretale.cluster.join import join
from wiretale.cluster.place import Place
from wiretale.cluster.progress import Progress, Step
from wiretale.cluster.shards import (
    CutFacts,
    Shard,
    ShardFacts,
    analyze,
    cut,
    file_folder,
    leave_out,
    read_facts,
    shard_folder,
    shards_of,
)
from wiretale.cluster.tasks import is_dead, reason_of, run_tasks

if TYPE_CHECKING:
    from distributed import Client

    from wiretale.analyzer.trace import Trace

CUT = Step("cutting", "cut", "file")
ANALYZE = Step("analyzing", "analyzed", "shard")
JOIN = Step("joining", "joined", "shard")
ROUNDS = 4  # after which a folder that loses files is given up


class Run:
    """The tasks of a job on a cluster."""

    def __init__(self, client: Client, job: Job, progress: Progress) -> None:
        self._client, self._job, self._progress = client, job, progress
        self._place = Place(job.work)
        #: captures that could not be read, and why
        self.left_out: dict[int, str] = {}

    def trace(self) -> Trace:
        """Runs the tasks and returns the result. InputError if no capture could be read, or if the folder loses files."""
        for _ in range(ROUNDS):
            cuts = self._cut()
            shards = shards_of(self._job, cuts)
            sums, lost = self._analyze(shards)
            if not lost:
                with self._progress.step(JOIN, len(shards), 0):
                    return join(self._job, shards, cuts, sums)
            for file in lost:
                self._progress.show(f"again: {file_folder(file)}: packets of {self._job.files[file].name} are damaged")
                self._place.remove(file_folder(file))
        raise InputError(f"{self._place}: loses files: expected a folder that keeps them")

    def _done(self, folders: Mapping[int, str], kind: Callable[..., Any]) -> dict[int, Any]:
        """Returns the facts of the tasks that an earlier run did."""
        there = self._place.names()
        numbers = [number for number, folder in folders.items() if f"{folder}/{FACTS}" in there]
        facts = {number: read_facts(self._place, folders[number], kind) for number in numbers}
        return {number: done for number, done in facts.items() if done is not None}

    def _cut(self) -> dict[int, CutFacts]:
        """Cuts the captures that are left; leaves out those that cannot be read, or that end their workers."""
        folders = {file: file_folder(file) for file in range(len(self._job.files))}
        cuts: dict[int, CutFacts] = self._done(folders, CutFacts)
        for file, facts in cuts.items():
            if facts.left_out is not None and file not in self.left_out:
                self._leave_out(file, facts.left_out)
        left = folders.keys() - cuts.keys()
        if not left:
            return cuts
        with self._progress.step(CUT, len(folders), len(cuts)):
            failed = self._cut_files(left, cuts)
            for file in [file for file, error in failed.items() if is_dead(error)]:
                failed |= {file: None, **self._cut_files([file], cuts)}  # alone: another one may have ended its workers
            for file, error in sorted(failed.items()):
                if error is not None:
                    name = self._job.files[file].name
                    text = str(error) if isinstance(error, InputError) else f"{name}: {reason_of(error)}"
                    cuts[file] = leave_out(self._job, file, text)
                    self._leave_out(file, text)
        return cuts

    def _leave_out(self, file: int, text: str) -> None:
        self.left_out[file] = text
        self._progress.warn(f"left out: {text}")

    def _cut_files(self, files: Collection[int], cuts: dict[int, CutFacts]) -> dict[int, BaseException | None]:
        """Cuts captures and adds their facts; returns the errors of the others. Raises those of the folder or of a worker."""
        failed: dict[int, BaseException | None] = {}
        tasks = {file: (self._job, file) for file in sorted(files)}
        for file, outcome in run_tasks(self._client, cut, tasks, self._progress.workers):
            self._progress.advance(1)
            if isinstance(outcome, CutFacts):
                cuts[file] = outcome
            elif isinstance(outcome, WiretaleError) and not isinstance(outcome, InputError):
                raise outcome
            else:
                failed[file] = outcome
        return failed

    def _analyze(self, shards: list[Shard]) -> tuple[list[ShardFacts], list[int]]:
        """Analyzes the shards that are left; returns their sums, and the captures whose packets are damaged."""
        sums: dict[int, ShardFacts] = self._done(
            {shard.number: shard_folder(shard.number) for shard in shards}, ShardFacts
        )
        lost: set[int] = set()
        tasks = {shard.number: (self._job, shard) for shard in shards if shard.number not in sums}
        if tasks:
            with self._progress.step(ANALYZE, len(shards), len(sums)):
                for number, outcome in run_tasks(self._client, analyze, tasks, self._progress.workers):
                    self._progress.advance(1)
                    if isinstance(outcome, ShardFacts):
                        sums[number] = outcome
                    elif isinstance(outcome, list):
                        lost.update(outcome)
                    elif isinstance(outcome, WiretaleError):
                        raise outcome
                    elif is_dead(outcome):
                        name = f"{self._place}/{shard_folder(number)}"
                        raise InputError(f"{name}: {reason_of(outcome)}: run the same command again to continue")
                    else:
                        raise MissingToolError(f"{reason_of(outcome)}: run the same command again to continue")
        return [sums[number] for number in sorted(sums)], sorted(lost)
