# SPDX-License-Identifier: Apache-2.0
"""The begin of a run: captures, plan and options in the shared folder, so that the same command continues there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wiretale.analyzer.capture_paths import is_url, public_url
from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.files.remote import SSH, file_system, folder_without_slash, reason_of
from wiretale.analyzer.options import AnalysisOptions
from wiretale.analyzer.shards import layout
from wiretale.cluster.place import Place
from wiretale.cluster.steps import Job
from wiretale.version import __version__

RUN = "run.json"
TASK_BYTES = (1_000_000, 100_000_000)  # least and most of captures in one task
TASK_FILES = 500
TASKS = 128  # that a run is divided into, if TASK_BYTES allow it
SHARD_BYTES = 50_000_000
SHARDS = (8, 64)


def remote_stamp(url: str) -> tuple[int, str]:
    """Returns the size of a file at a URL, 0 if unknown, and a text that changes with it. InputError if it cannot be reached."""
    if url.partition(":")[0].lower() in SSH:
        return 0, ""
    files, path = file_system(url)
    try:
        details: dict[str, Any] = files.info(path)
    except Exception as error:  # each file system has errors of its own
        raise InputError(f"{public_url(url)}: {reason_of(error)}") from None
    if details.get("type") == "directory":
        raise folder_without_slash(url)
    marks = (details.get(key) for key in ("ETag", "etag", "mtime", "LastModified"))
    return int(details.get("size") or 0), str(next(filter(None, marks), ""))


def local_size(path: str) -> int:
    """Returns the size of a local file; layout.plan() refuses one that does not exist."""
    return os.path.getsize(path) if os.path.isfile(path) else 0


def default_shards(size: int) -> int:
    """Returns the number of shards for captures of this size."""
    return min(max(size // SHARD_BYTES, SHARDS[0]), SHARDS[1])


def tasks_of(files: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Returns captures in groups, each for one task."""
    least, most = TASK_BYTES
    full = min(max(sum(sizes) // TASKS, least), most)
    groups: list[list[int]] = []
    room = 0
    for file in files:
        size = sizes[file] or full  # if it is unknown, alone
        if not groups or size > room or len(groups[-1]) == TASK_FILES:
            groups.append([])
            room = full
        groups[-1].append(file)
        room -= size
    return groups


def planned_shards(place: Place) -> int | None:
    """Returns the number of shards of an earlier run in the folder, None without one."""
    content = place.read(layout.PLAN)
    try:
        return None if content is None else int(json.loads(content)["shards"])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{place}/{layout.PLAN}: damaged: remove the folder to begin again") from None


def make_plan(place: Place, captures: Sequence[str], shards: int, options: AnalysisOptions) -> bytes:
    """Writes the plan of a split into the folder, or finds the same one there, and returns it. Raises as layout.plan()."""
    with ExitStack() as stack:
        folder = Path(place.text)
        if place.is_url:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wiretale-")))
            place.fetch(layout.PLAN, folder / layout.PLAN)
            if not (folder / layout.PLAN).exists() and place.names():
                raise UsageError(f"{place}: has other files: expected a new folder, or one of an earlier run")
        try:
            layout.plan(list(captures), folder, shards, options)
        except (UsageError, InputError) as error:
            raise type(error)(str(error).replace(str(folder), str(place))) from None
        content = (folder / layout.PLAN).read_bytes()
        if place.is_url and place.read(layout.PLAN) is None:
            place.write(layout.PLAN, content)
        return content


class State:
    """The state of a run beside the split: options, stamps of URLs, and captures that were left out."""

    def __init__(self, place: Place, options: dict[str, Any], stamps: dict[str, str]) -> None:
        self._place = place
        self._content: dict[str, Any] = {"wiretale": __version__, "options": options, "stamps": stamps}
        self.left_out: dict[int, str] = {}
        #: whether an earlier run is continued
        self.continues = False
        self._is_own = True  # not of `wiretale cluster split`, whose files must stay

    def restore(self) -> None:
        """Takes over the state of an earlier run. UsageError if it was of another version, InputError if a URL has changed.

        If its options differ, the rows are made again.
        """
        before = self._place.read(RUN)
        if before is None:
            self._is_own = not self._place.names(layout.FACTS)
            self.save()
            return
        try:
            recorded = json.loads(before)
            self.left_out = {int(file): str(text) for file, text in recorded.pop("left_out").items()}
            version, options, stamps = recorded["wiretale"], recorded["options"], recorded["stamps"]
            self._is_own = bool(recorded["own"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{self._place}/{RUN}: damaged: remove the folder to begin again") from None
        if version != __version__:
            raise UsageError(f"{self._place}: is of a run of wiretale {version}: remove it, or use another --work")
        for url, stamp in self._content["stamps"].items():
            if stamps.get(url) != stamp:
                raise InputError(
                    f"{url}: changed since the run in {self._place} began: remove it, or use another --work"
                )
        if options != self._content["options"]:
            self._place.remove(layout.ROWS)
            self.save()
        self.continues = True

    def remove(self) -> None:
        """Removes the folder, except for files of others."""
        run_files = {layout.FACTS, layout.ROWS, layout.PARTIAL}
        for name in sorted({name.split("/")[0] for name in self._place.names()}) if self._is_own else []:
            if name in run_files or layout.SHARD.fullmatch(name):
                self._place.remove(name)
        self._place.remove(RUN)
        if self._is_own:  # the plan last: without it, the rest would be files of others
            self._place.remove(layout.PLAN)
            self._place.remove_if_empty()

    def save(self) -> None:
        """Publishes the state."""
        self._place.write(RUN, json.dumps({**self._content, "own": self._is_own, "left_out": self.left_out}).encode())


def begin(
    place: Place,
    captures: Sequence[str],
    shards: int | None,
    options: AnalysisOptions,
) -> tuple[Job, State]:
    """Returns the job of a run, and its state. Raises as make_plan() and State.restore()."""
    remote = {url: remote_stamp(url) for url in captures if is_url(url)}
    sizes = tuple(remote[name][0] if name in remote else local_size(name) for name in captures)
    count = shards or planned_shards(place) or default_shards(sum(sizes))
    content = make_plan(place, captures, count, options)
    job = Job(place.text, content, os.getcwd(), tuple(captures), sizes, count, options)
    state = State(place, options.row_options(), {public_url(url): stamp for url, (_, stamp) in remote.items()})
    state.restore()
    return job, state
