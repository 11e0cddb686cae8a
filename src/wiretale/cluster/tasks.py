# SPDX-License-Identifier: Apache-2.0
"""Runs independent tasks on the workers of a cluster until each has a result.

A task that fails is tried again on any worker. If its worker dies, Dask gives it to another one, and gives up after three
deaths (distributed.scheduler.allowed-failures). Results are small: files stay in the place that the workers share.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.errors import MissingToolError, WiretaleError

if TYPE_CHECKING:
    from distributed import Client, Future

TRIES = 3
POLL_SECONDS = 0.5
WORKERS_SECONDS = 120.0  # that tasks wait for a worker


class Task(NamedTuple):
    """A function of a module that the workers have, and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Failed(NamedTuple):
    """The last error of a task that had all of its tries."""

    error: BaseException
    reason: str


def reason_of(error: BaseException) -> str:
    """Returns one line about an error of a task."""
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return "its workers died: look for their reason, such as a limit of memory"
    if isinstance(error, ModuleNotFoundError):
        return f"a worker has no module {error.name}: install the same wiretale on each"
    return str(error).strip().partition("\n")[0] or type(error).__name__


class Watch:
    """Raises MissingToolError if there has been no worker for a long time."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client, self._seconds = client, seconds
        self._seen = time.monotonic()

    def workers(self) -> int:
        """Returns the number of workers."""
        about = self._client.scheduler_info()
        count: int = about.get("n_workers", len(about.get("workers", ())))
        if self._client.status not in ("running", "connecting"):
            raise MissingToolError("the scheduler is gone: start one, and run the same command again, which continues")
        now = time.monotonic()
        if count:
            self._seen = now
        elif now - self._seen > self._seconds:
            raise MissingToolError(
                f"the cluster has had no worker for {self._seconds:.0f} s (one without wiretale ends at its first task): "
                "start some and run the same command again, which continues"
            )
        return count


def run_tasks(
    client: Client,
    tasks: Mapping[str, Task],
    waiting: Callable[[int], None],
    seconds: float = WORKERS_SECONDS,
) -> Iterator[tuple[str, Any]]:
    """Yields name and result of each task as it ends, or Failed in place of the result.

    A WiretaleError of a task is not tried again. `waiting` gets the number of workers from time to time. Whatever ends the
    iteration cancels the other tasks. MissingToolError as in Watch.
    """
    ended: SimpleQueue[Future] = SimpleQueue()
    names: dict[str, str] = {}
    futures: dict[str, Future] = {}
    tries = dict.fromkeys(tasks, 0)
    watch = Watch(client, seconds)

    def submit(name: str) -> None:
        task = tasks[name]
        tries[name] += 1
        key = f"wiretale-{name}-{os.urandom(6).hex()}"
        future = client.submit(task.function, *task.arguments, key=key, pure=False)
        names[future.key], futures[name] = name, future
        future.add_done_callback(ended.put)

    try:
        for name in tasks:
            submit(name)
        while futures:
            try:
                future = ended.get(timeout=POLL_SECONDS)
            except Empty:
                waiting(watch.workers())
                continue
            name = names.pop(future.key)
            del futures[name]
            if future.status == "finished":
                yield name, future.result()
                continue
            error = future.exception() if future.status == "error" else InterruptedError("the cluster lost the task")
            is_final = isinstance(error, WiretaleError) or tries[name] == TRIES
            if is_final or type(error).__name__ == "KilledWorker":
                yield name, Failed(error, reason_of(error))
            else:
                submit(name)
    finally:
        if futures and client.status == "running":
            client.cancel(list(futures.values()), force=True)
