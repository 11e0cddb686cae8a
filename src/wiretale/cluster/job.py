# SPDX-License-Identifier: Apache-2.0
"""The job of a run on a cluster: captures, options and number of shards, as a file of the shared folder (docs/cluster.md)."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from wiretale.analyzer.capture_paths import CLUSTER_JOB, is_url, public_url
from wiretale.analyzer.errors import InputError, MissingToolError, UsageError
from wiretale.analyzer.files.remote import SSH, file_system, folder_without_slash, reason_of
from wiretale.analyzer.options import AnalysisOptions
from wiretale.cluster.place import Place
from wiretale.version import __version__

SCHEMA = "wiretale.cluster/1"
FACTS = "facts.json"
KEY_SIZE, FILES_MOST = 24, 1 << 19  # analyzer/core/flow/shard.h, analyzer/core/format/packet_origin.h
SHARD_BYTES, SHARDS = 50_000_000, (8, 64)


class Capture(NamedTuple):
    """A capture as it was given, its size (0 if unknown), and what changes with it: its time of change, or a tag of a URL."""

    path: str
    size: int
    stamp: str

    @property
    def name(self) -> str:
        """As in rows: a URL without its password."""
        return public_url(self.path)


class Job(NamedTuple):
    """The facts with which each task begins."""

    work: str
    #: that relative names of captures are in
    directory: str
    files: tuple[Capture, ...]
    shards: int
    #: of the hash that divides flows, in hexadecimal digits
    key: str
    options: AnalysisOptions
    version: str = __version__

    def content(self) -> bytes:
        """Returns the file of the shared folder."""
        return json.dumps({"schema": SCHEMA, **self._asdict(), "work": "", "options": self.options._asdict()}).encode()

    def path_of(self, file: int) -> str:
        """Returns where a worker reads a capture."""
        path = self.files[file].path
        return path if is_url(path) else os.path.join(self.directory, path)

    def check(self) -> Place:
        """Returns the shared folder. MissingToolError if this worker has another wiretale, InputError if another folder."""
        host = socket.gethostname()
        if self.version != __version__:
            text = f"the worker on {host} has wiretale {__version__}, but this is {self.version}: install the same"
            raise MissingToolError(text)
        place = Place(self.work)
        if place.read(CLUSTER_JOB) != self.content():
            text = f"{place}: the worker on {host} does not see this folder: expected a --work that all workers share, or a URL"
            raise InputError(text)
        return place

    def check_visible(self, file: int) -> None:
        """Raises InputError if this worker does not see a local capture as it was when the run began."""
        capture = self.files[file]
        if is_url(capture.path):
            return
        try:
            seen = stamp_of(self.path_of(file))
        except OSError as error:
            where = f"the worker on {socket.gethostname()} cannot read it ({error.strerror})"
            raise InputError(f"{capture.path}: {where}: expected captures that all workers see, or URLs") from None
        if seen != (capture.size, capture.stamp):
            raise InputError(f"{capture.path}: changed since the run began: use another --work")


def stamp_of(path: str) -> tuple[int, str]:
    """Returns size and time of change of a local file, which each machine sees alike."""
    about = os.stat(path)
    return about.st_size, str(about.st_mtime_ns)


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


def capture_of(path: str) -> Capture:
    """Returns a capture. UsageError if it can be read only once, InputError if it cannot be reached."""
    if is_url(path):
        return Capture(path, *remote_stamp(path))
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
        raise UsageError(f"{path}: expected a file or URL, because each task may be repeated")
    try:
        return Capture(path, *stamp_of(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def read_job(place: Place) -> Job | None:
    """Returns the job of a folder, None without one. InputError if it is damaged, UsageError if it is of another version."""
    content = place.read(CLUSTER_JOB)
    if content is None:
        return None
    try:
        record = json.loads(content)
        is_known, version = record.pop("schema") == SCHEMA, str(record["version"])
        if is_known and version == __version__:
            options = AnalysisOptions.from_json(record["options"])
            files = tuple(Capture(*capture) for capture in record["files"])
            return Job(**{**record, "files": files, "options": options, "work": place.text})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{place}/{CLUSTER_JOB}: damaged: remove the folder to begin again") from None
    raise UsageError(f"{place}: is of a run of wiretale {version}: remove it, or use another --work")


def begin(place: Place, paths: Sequence[str], shards: int | None, options: AnalysisOptions) -> tuple[Job, bool]:
    """Returns the job of a run, and whether it continues one of the same captures and options in this folder.

    UsageError if the folder has other files or another run, InputError if a capture cannot be reached or has changed since.
    """
    captures = tuple(map(capture_of, paths))
    if len(captures) > FILES_MOST:
        raise UsageError(f"expected at most {FILES_MOST:,} captures, but there are {len(captures):,}")
    if before := read_job(place):
        check_same(place, before, captures, shards, options)
        return before, True
    if strange := next(iter(sorted(place.names())), None):
        raise UsageError(f"{place}: expected a new or empty folder, or one of an earlier run: it has {strange}")
    size = sum(capture.size for capture in captures)
    count = shards or min(max(size // SHARD_BYTES, SHARDS[0]), SHARDS[1])
    job = Job(place.text, os.getcwd(), captures, count, secrets.token_hex(KEY_SIZE), options)
    place.write(CLUSTER_JOB, job.content())
    return job, False


def check_same(
    place: Place, job: Job, captures: tuple[Capture, ...], shards: int | None, options: AnalysisOptions
) -> None:
    """Raises an error if the job of a folder is another one."""
    if [capture.path for capture in job.files] != [capture.path for capture in captures]:
        raise UsageError(f"{place}: is of a run of other captures: remove it, or use another --work")
    for now, then in zip(captures, job.files, strict=True):
        if now != then:
            raise InputError(f"{now.name}: changed since the run in {place} began: remove it, or use another --work")
    if job.options.row_options() != options.row_options() or shards not in (None, job.shards):
        raise UsageError(f"{place}: is of a run with other options: remove it, or use another --work")


@contextmanager
def output(place: Place, name: str) -> Iterator[Path]:
    """A folder for the files of a task, which appears at the end of the block, as a whole or with its facts last."""
    above = None if place.is_url else place.text
    with TemporaryDirectory(prefix=".partial-", dir=above) as folder:
        made = Path(folder, "made")
        made.mkdir()
        yield made
        place.publish(made, name, FACTS)
