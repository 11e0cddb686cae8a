# SPDX-License-Identifier: Apache-2.0
"""Runs independent tasks on the workers of a cluster until each has a result.

Dask tries a task that fails again on any worker. If its worker dies, Dask gives it to another one, and gives up after three
deaths (distributed.scheduler.allowed-failures). Results are small: files stay in the place that the workers share.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from wiretale.analyzer.errors import MissingToolError, WiretaleError

if TYPE_CHECKING:
    from distributed import Client, Future

RETRIES = 2
POLL_SECONDS = 0.5
WORKERS_SECONDS = 120.0  # that tasks wait for a worker
Key = TypeVar("Key")


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result, or the WiretaleError that each try would meet."""
    try:
        return function(*arguments)
    except WiretaleError as error:
        return error


def is_dead(error: object) -> bool:
    """Returns whether the workers of a task died."""
    return type(error).__name__ == "KilledWorker"


def reason_of(error: BaseException) -> str:
    """Returns one line about an error of a task."""
    if is_dead(error):
        return "its workers died: look for their reason, such as a limit of memory"
    if isinstance(error, ModuleNotFoundError):
        return f"a worker has no module {error.name}: install the same wiretale on each"
    return str(error).strip().partition("\n")[0] or type(error).__name__


class Watch:
    """Raises MissingToolError if there has been no worker for a long time."""

    def __init__(self, client: Client) -> None:
        self._client = client
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
        elif now - self._seen > WORKERS_SECONDS:
            raise MissingToolError(
                f"the cluster has had no worker for {WORKERS_SECONDS:.0f} s (one without wiretale ends at its first task): "
                "start some and run the same command again, which continues"
            )
        return count


def run_tasks(
    client: Client,
    function: Callable[..., Any],
    tasks: Mapping[Key, tuple[Any, ...]],
    waiting: Callable[[int], None],
) -> Iterator[tuple[Key, Any]]:
    """Yields key and result of each task, the arguments of a function, as it ends; its last error in place of the result.

    `waiting` gets the number of workers from time to time. Whatever ends the iteration cancels the other tasks.
    MissingToolError as in Watch.
    """
    ended: SimpleQueue[Future] = SimpleQueue()
    run = os.urandom(6).hex()
    watch = Watch(client)
    futures: dict[str, tuple[Key, Future]] = {}
    try:
        for number, (key, arguments) in enumerate(tasks.items()):
            name = f"wiretale-{function.__name__}-{run}-{number}"
            future = client.submit(attempt, function, *arguments, key=name, retries=RETRIES, pure=False)
            futures[name] = key, future
            future.add_done_callback(ended.put)
        while futures:
            try:
                future = ended.get(timeout=POLL_SECONDS)
            except Empty:
                waiting(watch.workers())
                continue
            key, _ = futures.pop(future.key)
            if future.status == "finished":
                yield key, future.result()
            else:
                yield (
                    key,
                    future.exception() if future.status == "error" else MissingToolError("the cluster lost a task"),
                )
    finally:
        if futures and client.status == "running":
            client.cancel([future for _, future in futures.values()], force=True)
