# SPDX-License-Identifier: Apache-2.0
"""Progress of a run on stderr: bars on a terminal, otherwise one line for each step that ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.printable import printable
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


class Step(NamedTuple):
    """Words about a step: `cutting`, `cut`, `file`."""

    doing: str
    done: str
    unit: str


class Progress:
    """Reports steps; `quiet` leaves only warn()."""

    def __init__(self, quiet: bool, bars: Bars | None) -> None:
        self._quiet, self._bars = quiet, bars
        self._bar: TaskID | None = None
        self._workers = -1

    def warn(self, text: str) -> None:
        """Writes a line."""
        line = f"wiretale: {printable(text)}"
        if self._bars:
            self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def show(self, text: str) -> None:
        """Writes a line unless quiet."""
        if not self._quiet:
            self.warn(text)

    @contextmanager
    def step(self, step: Step, total: int, before: int) -> Iterator[None]:
        """A step of `total` tasks, of which `before` were done by an earlier run."""
        begin = time.monotonic()
        if self._bars:
            self._bar = self._bars.add_task(step.doing, total=total, completed=before, unit=step.unit, workers="")
        yield
        self._bar = None
        spent = time.monotonic() - begin
        earlier = f", {before:,} of them by an earlier run" if before else ""
        if not self._bars:
            self.show(f"{step.done} {plural(total, step.unit)} in {spent:.1f} s{earlier}")

    def advance(self, units: int) -> None:
        """Counts finished tasks."""
        if self._bars and self._bar is not None:
            self._bars.update(self._bar, advance=units)

    def workers(self, count: int) -> None:
        """Shows the number of workers, and a line if there is none."""
        if self._bars:
            for task in self._bars.task_ids:
                self._bars.update(task, workers=plural(count, "worker"))
        if count != self._workers and 0 in (count, self._workers):
            self.show("waiting for workers" if not count else plural(count, "worker"))
        self._workers = count


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Progress on stderr."""
    if quiet or not sys.stderr.isatty():
        yield Progress(quiet, None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}s"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[workers]}"),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        yield Progress(quiet, bars)
