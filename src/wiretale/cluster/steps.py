# SPDX-License-Identifier: Apache-2.0
"""The steps as workers run them, with the files of the shared folder (docs/split.md has its layout).

In a directory, a step publishes its files by rename. From and to a URL, the files of a step are copied, the one that stands
for the whole step last. A worker needs wiretale in the same version, the captures, and the shared folder.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from wiretale.analyzer.capture_paths import is_url
from wiretale.analyzer.errors import InputError, MissingToolError, OutputError
from wiretale.analyzer.options import AnalysisOptions
from wiretale.analyzer.shards.layout import FACTS, PLAN, ROWS, SHARD
from wiretale.cluster import program
from wiretale.cluster.place import Place
from wiretale.version import __version__


class StepFault(Exception):
    """A step failed for a reason that another try may not meet."""


def facts_name(file: int) -> str:
    return f"{FACTS}/{file:06}.json"


def packets_name(file: int, shard: int) -> str:
    return f"{shard_name(shard)}/{file:06}.pcapng.zst"


def shard_name(shard: int) -> str:
    return f"shard-{shard:02}"


def rows_name(shard: int) -> str:
    return f"{ROWS}/shard-{shard:02}.rows"


class Problem(NamedTuple):
    """Why a step could not be done, and the file of the shared folder that is to blame, if it is one."""

    number: int
    text: str
    lost: str | None


@dataclass(frozen=True)
class Job:
    """The facts with which each step of a run begins."""

    work: str
    plan: bytes  # which a worker must see in the folder
    directory: str  # that relative names of captures are in
    names: tuple[str, ...]
    sizes: tuple[int, ...]  # bytes; 0 if unknown
    shards: int
    options: AnalysisOptions
    version: str = __version__

    def check(self) -> Place:
        """Returns the shared folder. MissingToolError if this worker has another wiretale, InputError if another folder."""
        host = socket.gethostname()
        if self.version != __version__:
            text = f"the worker on {host} has wiretale {__version__}, but this is {self.version}: install the same"
            raise MissingToolError(text)
        place = Place(self.work)
        if place.read(PLAN) != self.plan:
            text = f"{place}: the worker on {host} does not see this folder: expected a --work that all workers share, or a URL"
            raise InputError(text)
        return place

    def check_visible(self, file: int) -> None:
        """Raises InputError if this worker does not see a local capture."""
        name, size = self.names[file], self.sizes[file]
        if is_url(name):
            return
        try:
            seen_bytes = os.stat(os.path.join(self.directory, name)).st_size
            reason = "" if seen_bytes == size else f"it has {seen_bytes:,} bytes there, not {size:,}"
        except OSError as error:
            reason = str(error.strerror)
        if reason:
            where = f"the worker on {socket.gethostname()} cannot read it ({reason})"
            raise InputError(f"{name}: {where}: expected captures that all workers see, or URLs")


@contextmanager
def folder_of(place: Place, names: Sequence[str]) -> Iterator[Path]:
    """The shared directory; of a URL, a directory on this worker with copies of these files."""
    if not place.is_url:
        yield Path(place.text)
        return
    from distributed import get_worker

    above = get_worker().local_directory  # which Dask removes with the worker
    copies = Path(tempfile.mkdtemp(prefix="step-", dir=above))
    try:
        for name in names:
            place.fetch(name, copies / name)
        yield copies
    finally:
        shutil.rmtree(copies, ignore_errors=True)


def problem_of(text: str, folder: Path, number: int = 0) -> Problem:
    """Returns the problem of a step from its error, which begins with a file of the folder if that is missing or damaged."""
    if not text.startswith(f"{folder}/"):
        return Problem(number, text, None)
    text = text.removeprefix(f"{folder}/")
    name = text.partition(": ")[0]
    top, _, file = name.partition("/")
    if not SHARD.fullmatch(top) and top not in (FACTS, ROWS):
        return Problem(number, text, None)
    return Problem(number, text, name if file else f"{ROWS}/{name}.rows")


def run(job: Job, kind: str, folder: Path, numbers: Sequence[int]) -> list[program.Ended]:
    """Runs steps in processes; if one dies, another continues after the step at which it died.

    OutputError if a step cannot write, or another error that each try would meet.
    """
    directory = job.directory if os.path.isdir(job.directory) else None
    ended: list[program.Ended] = []
    stopped = program.canceled()
    while len(ended) < len(numbers):
        ended += program.run(kind, folder, numbers[len(ended) :], job.options, directory, stopped)
    for outcome in ended:
        if outcome.state == program.STOP:
            raise OutputError(f"{outcome.text} (on {socket.gethostname()})")
    return ended


def check_faults(ended: Sequence[program.Ended]) -> None:
    """Raises StepFault if a step had a fault."""
    for outcome in ended:
        if outcome.state == program.FAULT:
            raise StepFault(outcome.text)


def publish_split(job: Job, place: Place, folder: Path, file: int) -> None:
    """Copies the files of a capture to a URL."""
    if place.is_url:
        for name in (*(packets_name(file, shard) for shard in range(job.shards)), facts_name(file)):
            place.copy(folder / name, name)


def split(job: Job, files: Sequence[int]) -> list[Problem]:
    """Splits captures; returns those that could not be read. StepFault if another try may help."""
    place = job.check()
    for file in files:
        job.check_visible(file)
    with folder_of(place, [PLAN]) as folder:
        ended = run(job, program.SPLIT, folder, files)
        for outcome in ended:
            if outcome.state == program.DONE:
                publish_split(job, place, folder, outcome.number)
        check_faults(ended)
        return [problem_of(outcome.text, folder, outcome.number) for outcome in ended if outcome.state == program.INPUT]


def analyze(job: Job, shard: int) -> Problem | None:
    """Analyzes a shard; returns the problem if a file of the shared folder is missing or damaged."""
    place = job.check()
    files = range(len(job.names))
    needed = [PLAN, *map(facts_name, files), *(packets_name(file, shard) for file in files)]
    with folder_of(place, needed) as folder:
        ended = run(job, program.ANALYZE, folder, [shard])
        check_faults(ended)
        if ended[0].state == program.INPUT:
            return problem_of(ended[0].text, folder, shard)
        if place.is_url:
            place.copy(folder / rows_name(shard), rows_name(shard))
        return None


def leave_out(job: Job, file: int) -> None:
    """Splits an empty capture in place of one that cannot be read."""
    place = job.check()
    with folder_of(place, [PLAN]) as folder:
        ended = run(job, program.LEAVE_OUT, folder, [file])
        for outcome in ended:
            if outcome.state != program.DONE:
                raise StepFault(outcome.text)
        publish_split(job, place, folder, file)
